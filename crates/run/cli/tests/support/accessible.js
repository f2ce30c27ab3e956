// Barriers for users with low or no vision: the rules of WCAG 2.1 that a script can check. The last
// expression is the list of violations.
(() => {
  const told = [];
  const short = (e) => (e.outerHTML || "").replace(/\s+/g, " ").slice(0, 90);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (e) => {
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    return box.width > 0 && box.height > 0 && style.visibility === "visible" && style.display !== "none";
  };
  // 3.1.1, 2.4.2, landmarks.
  if (!document.documentElement.lang) told.push("the page names no language");
  if (!document.title.trim()) told.push("the page has no title");
  if (all("main").length !== 1) told.push(`${all("main").length} main landmarks`);
  if (all("h1").filter(shown).length !== 1) told.push(`${all("h1").filter(shown).length} first headings`);
  for (const e of all("body *")) {
    const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const within = e.closest("main, header, nav, footer, [role=region], [role=search], [role=status], .site, .skip, script, style, noscript");
    if (words && shown(e) && !within) told.push(`outside of landmarks: ${short(e)}`);
  }
  // 1.3.1: heading levels increase by one at most.
  let before = 0;
  for (const e of all("h1, h2, h3, h4, h5, h6").filter(shown)) {
    const level = Number(e.tagName[1]);
    if (level > before + 1) told.push(`a heading of level ${level} after one of ${before}: ${short(e)}`);
    if (!e.textContent.trim()) told.push(`an empty heading: ${short(e)}`);
    before = level;
  }
  // 4.1.2, 1.1.1: controls and images have a name.
  const named = (e) => {
    const by = (e.getAttribute("aria-labelledby") || "").split(/\s+/).map((id) => id && document.getElementById(id));
    const labels = [...(e.labels || [])].map((label) => label.textContent);
    const texts = [e.getAttribute("aria-label"), ...by.map((of) => of && of.textContent), ...labels,
      e.tagName === "IMG" ? e.getAttribute("alt") : null, e.title,
      e.matches("button, a, summary") ? e.textContent : null,
      [...e.querySelectorAll(":scope > title")].map((of) => of.textContent).join("")];
    return texts.some((text) => text && text.trim());
  };
  for (const e of all("input:not([type=hidden]), select, textarea, button, a[href], summary, progress, img, [role=img]")) {
    if (shown(e) && !named(e)) told.push(`no name: ${short(e)}`);
  }
  for (const e of all("svg")) {
    if (!e.closest("[aria-hidden=true]") && !named(e) && !e.querySelector("title")) told.push(`a picture without a name: ${short(e)}`);
  }
  for (const e of all("th")) if (!e.textContent.trim() && !named(e)) told.push(`an empty heading of a table: ${short(e)}`);
  // 2.1.1: scrolling elements are reachable by keyboard.
  for (const e of all("pre, .scroll").filter(shown)) {
    const scrolls = e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1;
    if (scrolls && e.tabIndex < 0 && !e.querySelector("a[href], button, input")) told.push(`scrolls without the keyboard: ${short(e)}`);
  }
  // 4.1.1: ids are unique.
  const ids = all("[id]").map((e) => e.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) told.push(`two are called ${id}`);
  // 1.4.3: text has sufficient contrast.
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const level = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const luminance = (c) => .2126 * level(c[0]) + .7152 * level(c[1]) + .0722 * level(c[2]);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  for (const e of all("body *")) {
    const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    // The background of heat map values is their cell. Disabled controls need no contrast (1.4.3).
    if (!words || !shown(e) || e.matches(":disabled, script, style, svg .v0, svg .v1, svg [class^='h']") || e.closest("noscript")) continue;
    const svg = e.closest("svg"), style = getComputedStyle(e);
    if (svg && /\bv\d\b/.test(e.getAttribute("class") || "")) continue;
    const [a, b] = [rgb(svg ? style.fill : style.color), behind(svg ? svg.parentElement : e)].map(luminance);
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) told.push(`too faint, ${ratio.toFixed(2)}: ${short(e)}`);
  }
  return told;
})()
