// Pointer read-out and zoom along x for the charts of this page. No library, no request.
// Every chart is complete without this script.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const SCALES = {
    latency: [[1e9, " s"], [1e6, " ms"], [1e3, " µs"], [1, " ns"]],
    bandwidth: [[1e9, " GB/s"], [1e6, " MB/s"], [1e3, " kB/s"], [1, " B/s"]],
    size: [[2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"], [1024, " KiB"], [1, " B"]],
    rate: [[1, "/s"]],
    share: [[0.01, " %"]],
    plain: [[1, ""]],
  };
  const CLOCK = [1e6, 1e7, 1e8, 5e8, 1e9, 2e9, 5e9, 1e10, 1.5e10, 3e10, 6e10, 1.2e11, 3e11, 6e11,
    9e11, 1.8e12, 3.6e12, 7.2e12, 2.16e13, 4.32e13, 8.64e13];

  const two = (n) => String(n).padStart(2, "0");
  function clock(ns, fine) {
    if (fine) return (ns / 1e9).toFixed(fine) + " s";
    const s = Math.round(ns / 1e9);
    const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
  }
  function show(unit, value) {
    if (unit === "elapsed") return clock(value, value % 1e9 && value < 6e11 ? 1 : 0);
    const size = Math.abs(value);
    const scales = SCALES[unit];
    const [by, name] = scales.find(([by]) => size >= by) || scales[scales.length - 1];
    const n = value / by;
    const digits = n === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(n))));
    return n.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 6) }) + name;
  }
  function make(name, attributes, parent) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    parent.appendChild(node);
    return node;
  }

  class Chart {
    constructor(figure, data, narrow) {
      Object.assign(this, data);
      [this.left, this.top, this.width, this.height] = narrow ? data.narrow : data.frame;
      this.svg = figure.querySelector(narrow ? "svg.narrow" : "svg.wide");
      this.full = [this.x.low, this.x.high];
      // A title of the drawing would cover the read-out.
      const title = this.svg.querySelector("title");
      this.svg.setAttribute("aria-label", title.textContent);
      title.remove();
      this.paths = [...this.svg.querySelectorAll(".marks path")];
      this.hair = make("path", { class: "hair", visibility: "hidden" }, this.svg);
      this.box = make("rect", { class: "drag", y: this.top, height: this.height, width: 0 }, this.svg);
      const overlay = make("rect", { class: "overlay", x: this.left, y: this.top,
        width: this.width, height: this.height }, this.svg);
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      figure.appendChild(this.tip);
      this.reset = document.createElement("button");
      this.reset.textContent = "whole run";
      this.reset.hidden = true;
      this.reset.onclick = () => this.zoom(...this.full);
      figure.querySelector("figcaption").appendChild(this.reset);
      overlay.onpointermove = (e) => this.move(e);
      overlay.onpointerleave = () => this.leave();
      overlay.onpointerdown = (e) => {
        if (e.button || this.x.log) return;
        this.from = this.at(e);
        overlay.setPointerCapture(e.pointerId);
      };
      overlay.onpointerup = (e) => this.release(e);
      overlay.ondblclick = () => this.zoom(...this.full);
    }
    share(axis, value) {
      if (axis.log) {
        return value <= 0 ? 0 : Math.log(value / axis.low) / Math.log(axis.high / axis.low);
      }
      return (value - axis.low) / (axis.high - axis.low);
    }
    px(x) { return this.left + this.share(this.x, x) * this.width; }
    py(y) { return this.top + this.height * (1 - Math.min(1.01, Math.max(-.01, this.share(this.y, y)))); }
    at(event) {
      const frame = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / frame.width;
      const px = (event.clientX - frame.left) * scale;
      return Math.min(this.left + this.width, Math.max(this.left, px));
    }
    value(px) {
      const share = (px - this.left) / this.width;
      return this.x.log ? this.x.low * (this.x.high / this.x.low) ** share
        : this.x.low + share * (this.x.high - this.x.low);
    }
    nearest(series, x) {
      let low = 0, high = series.x.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (series.x[middle] <= x) low = middle; else high = middle;
      }
      if (series.steps) return series.x[high] <= x ? high : low;
      return Math.abs(series.x[high] - x) < Math.abs(series.x[low] - x) ? high : low;
    }
    move(event) {
      const px = this.at(event), x = this.value(px);
      if (this.from !== undefined) {
        this.box.setAttribute("x", Math.min(px, this.from));
        this.box.setAttribute("width", Math.abs(px - this.from));
      }
      this.hair.setAttribute("d", `M${px} ${this.top}v${this.height}`);
      this.hair.setAttribute("visibility", "visible");
      this.tip.replaceChildren();
      const line = (name, value, colour) => {
        const row = this.tip.appendChild(document.createElement("div"));
        if (colour !== undefined) {
          row.appendChild(document.createElement("i")).style.background = `var(--c${colour})`;
        }
        row.appendChild(document.createElement("span")).textContent = name;
        row.appendChild(document.createElement("b")).textContent = value;
      };
      const first = this.series[0];
      line("", show(this.x.unit, first ? first.x[this.nearest(first, x)] : x));
      for (const series of this.series) {
        const y = series.y[this.nearest(series, x)];
        const name = series.every > 1 ? `${series.name} (extremes of ${series.every})` : series.name;
        line(name, y == null ? "n/a" : show(this.y.unit, y), series.colour);
      }
      this.tip.hidden = false;
      const figure = this.tip.parentNode.getBoundingClientRect();
      const left = event.clientX - figure.left;
      const right = left + 16 + this.tip.offsetWidth > figure.width;
      this.tip.style.left = `${right ? left - 12 - this.tip.offsetWidth : left + 14}px`;
      this.tip.style.top = `${event.clientY - figure.top + 10}px`;
    }
    leave() {
      this.tip.hidden = true;
      this.hair.setAttribute("visibility", "hidden");
    }
    release(event) {
      if (this.from === undefined) return;
      const ends = [this.value(this.from), this.value(this.at(event))].sort((a, b) => a - b);
      const wide = Math.abs(this.at(event) - this.from) > 6;
      this.from = undefined;
      this.box.setAttribute("width", 0);
      if (wide) this.zoom(...ends);
    }
    zoom(low, high) {
      this.x.low = low;
      this.x.high = high;
      this.reset.hidden = low === this.full[0] && high === this.full[1];
      let path = 0;
      for (const series of this.series) {
        const points = this.visible(series);
        if (series.filled) this.paths[path++].setAttribute("d", this.area(points));
        this.paths[path++].setAttribute("d", this.line(points));
      }
      this.bands();
      this.ticks();
    }
    // Minimum and maximum of each pixel column, in order, as in the static drawing.
    visible(series) {
      const out = [];
      let column = null, level = null;
      const flush = () => {
        if (column) for (const p of [column.first, ...(column.least[2] < column.largest[2]
          ? [column.least, column.largest] : [column.largest, column.least]), column.last]) out.push(p);
        column = null;
      };
      const put = (x, y, i) => {
        const p = [x, y, i], pixel = Math.floor(x);
        if (column && column.pixel !== pixel) flush();
        if (!column) column = { pixel, first: p, least: p, largest: p };
        if (y < column.least[1]) column.least = p;
        if (y > column.largest[1]) column.largest = p;
        column.last = p;
      };
      for (let i = 0; i < series.x.length; i++) {
        const x = this.px(series.x[i]);
        if (series.steps && level !== null) put(x, level, i - .5);
        if (series.y[i] == null) { flush(); out.push(null); level = null; continue; }
        level = this.py(series.y[i]);
        put(x, level, i);
      }
      flush();
      return out;
    }
    line(points) {
      let d = "", down = false;
      for (const p of points) {
        if (p) d += `${down ? "L" : "M"}${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
        down = Boolean(p);
      }
      return d;
    }
    area(points) {
      const bottom = this.top + this.height;
      let d = "", last = null;
      for (const p of [...points, null]) {
        if (p && !last) d += `M${p[0].toFixed(1)} ${bottom}`;
        if (p) d += `L${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
        if (!p && last) d += `L${last[0].toFixed(1)} ${bottom}Z`;
        last = p;
      }
      return d;
    }
    bands() {
      const right = this.left + this.width;
      for (const node of this.svg.querySelectorAll("[data-from]")) {
        const from = Math.min(right, Math.max(this.left, this.px(+node.dataset.from)));
        const to = Math.min(right, Math.max(this.left, this.px(+node.dataset.to)));
        if (node.tagName === "rect") {
          node.setAttribute("x", from);
          node.setAttribute("width", to - from);
        } else {
          node.setAttribute("x", from + 4);
          node.toggleAttribute("hidden", to - from < +node.dataset.px);
        }
      }
      for (const node of this.svg.querySelectorAll("[data-at]")) {
        const x = this.px(+node.dataset.at);
        node.setAttribute("visibility", x < this.left || x > right ? "hidden" : "visible");
        if (node.tagName === "path") node.setAttribute("d", `M${x} ${this.top}v${this.height}`);
        else node.setAttribute("x", node.classList.contains("end") ? x - 5 : x + 5);
      }
    }
    ticks() {
      const group = this.svg.querySelector(".xticks");
      group.replaceChildren();
      const span = this.x.high - this.x.low, count = Math.max(1, Math.floor(this.width / 72));
      const power = 10 ** Math.floor(Math.log10(span / count));
      const step = this.x.unit === "elapsed" && CLOCK.find((s) => s >= span / count)
        || [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= span / count);
      const fine = step < 1e9 ? Math.ceil(-Math.log10(step / 1e9)) : 0;
      for (let i = Math.ceil(this.x.low / step); i * step <= this.x.high; i++) {
        const x = this.px(i * step), bottom = this.top + this.height;
        make("path", { d: `M${x.toFixed(1)} ${bottom}v4` }, group);
        const text = make("text", { class: "mid", x: x.toFixed(1), y: bottom + 16 }, group);
        text.textContent = this.x.unit === "elapsed" ? clock(i * step, fine) : show(this.x.unit, i * step);
      }
    }
  }

  for (const figure of document.querySelectorAll("figure.plot")) {
    const data = figure.querySelector("script[type='application/json']");
    // Each of the two drawings has its own read-out. The style sheet shows the drawing that fits.
    if (data) for (const narrow of [false, true]) new Chart(figure, JSON.parse(data.textContent), narrow);
  }
})();
