// Additions of the pages to the script of reports. No library; each page is complete without it.
(() => {
  "use strict";
  // A file fills the text field of a pasted result. Nothing is sent until the form is submitted.
  for (const input of document.querySelectorAll("input[type=file][data-into]")) {
    input.parentNode.hidden = false;
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (!file) return;
      const field = input.form.elements[input.dataset.into];
      field.value = await file.text();
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    // The file itself is not sent.
    input.removeAttribute("name");
  }

  // Follows a run: each message replaces the shown state.
  const live = document.querySelector("[data-events]");
  if (live) {
    const told = new EventSource(live.dataset.events);
    const put = (id) => (event) => { document.getElementById(id).innerHTML = event.data; };
    told.addEventListener("now", put("live-now"));
    told.addEventListener("more", put("live-more"));
    told.addEventListener("charts", put("live-charts"));
    const over = () => {
      told.close();
      for (const one of live.querySelectorAll("[data-while-live]")) one.remove();
    };
    told.addEventListener("end", over);
    // Too many viewers, or no server: the page reloads after a while.
    told.addEventListener("error", () => {
      if (told.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 10000);
    });
  }

  // Checks the request while the user writes it.
  const draft = document.querySelector("form[data-check]");
  if (draft) {
    const said = draft.querySelector("[data-said]");
    const text = draft.querySelector("[data-text]");
    const start = draft.querySelector("[data-start]");
    const line = (words, refused, name) => {
      const p = document.createElement("p");
      p.textContent = words;
      if (refused || name) p.className = name || "refused";
      return p;
    };
    let asked = 0;
    let waiting;
    const check = async () => {
      const number = ++asked;
      const body = new URLSearchParams(new FormData(draft));
      let told;
      try {
        const answer = await fetch(draft.dataset.check, { method: "POST", body });
        told = await answer.json();
      } catch {
        told = { error: { message: "the server does not answer" } };
      }
      // A newer request has its own answer.
      if (number !== asked) return;
      const lines = [];
      if (told.error) lines.push(line(told.error.message, true));
      if (told.refused) lines.push(line(told.refused, true));
      for (const one of told.problems || []) {
        const what = one.field || `line ${one.line}`;
        lines.push(line(`${what} ${one.message}${one.help ? `: ${one.help}` : ""}`, true));
      }
      for (const one of told.takes || []) lines.push(line(one, false));
      for (const one of told.notes || []) lines.push(line(one, false, "note"));
      said.replaceChildren(...lines);
      if (text && told.text !== undefined) text.textContent = told.text;
      if (start) start.disabled = !told.can_start;
    };
    draft.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(check, 300);
    });
  }
})();
