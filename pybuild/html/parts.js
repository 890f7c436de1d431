"use strict";
/* What all panels are made of: elements, numbers, tables, charts. Names of models and
   layers are strangers' words: they become text nodes here, and markup nowhere. */

const data = JSON.parse(document.getElementById("data").textContent);

/** An element; strings among the children become text. */
function el(tag, props, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (name === "on") {
      for (const [event, call] of Object.entries(value)) made.addEventListener(event, call);
    } else if (name === "style") {
      for (const [key, each] of Object.entries(value)) made.style.setProperty(key, each);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

const said = (n, digits) => n.toLocaleString("en-US", { maximumFractionDigits: digits ?? 0 });
const share = (part, whole) => `${said((100 * part) / Math.max(whole, 1), 1)} %`;
const total = (rows, of) => rows.reduce((sum, row) => sum + of(row), 0);
const plural = (n, word) => `${said(n)} ${word}${n === 1 ? "" : "s"}`;

/** 5,252 B, 12.4 KB: for axes; tables have the bytes. */
function size(bytes) {
  if (bytes < 1024) return `${said(bytes)} B`;
  if (bytes < 1048576) return `${said(bytes / 1024, bytes < 10240 ? 2 : bytes < 102400 ? 1 : 0)} KB`;
  return `${said(bytes / 1048576, 2)} MB`;
}

/** A step between marks of an axis in bytes: a power of two, eight marks at most. */
function stride(most) {
  let step = 1;
  while (most / step > 8) step *= 2;
  return step;
}

function brief(n) {
  for (const [scale, word] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (n >= scale) return `${said(n / scale, n >= 100 * scale ? 0 : n >= 10 * scale ? 1 : 2)} ${word}`;
  }
  return said(n, 2);
}

function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/* ---- colours --------------------------------------------------------------- */

const PALETTE = {
  light: ["#3f72d0", "#d9822b", "#2a9d78", "#c04a90", "#8460c8", "#788a1c", "#c4493c",
    "#2f93ad", "#8d6e52", "#697386"],
  dark: ["#79a6f7", "#f0aa5e", "#5fcca8", "#e886c0", "#b89cf2", "#b5c451", "#f08d82",
    "#70c9df", "#c4a586", "#a5adba"],
};

const isDark = () => document.documentElement.dataset.theme === "dark";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const hue = (number) => PALETTE[isDark() ? "dark" : "light"][number % 10];

/** Black or white, what can be read on a colour. */
function inkOn(fill) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? "#10151c" : "#ffffff";
}

/** From pale to full, for 0 to 1. */
function heat(part) {
  const [low, high] = isDark() ? [[42, 52, 66], [255, 166, 87]] : [[232, 238, 247], [196, 72, 20]];
  const mixed = low.map((c, i) => Math.round(c + (high[i] - c) * Math.min(Math.max(part, 0), 1)));
  return `#${mixed.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
}

/** of: () -> [[name, colour], ...], asked again where the theme changes */
function legend(of) {
  const made = el("ul", { class: "key" });
  const fill = () => made.replaceChildren(...of().map(([name, shade]) =>
    el("li", {}, el("i", { style: { background: shade } }), name)));
  document.addEventListener("theme", fill);
  fill();
  return made;
}

/** Of which model a page of several is being filled; "": of all. */
let part = "";
const ofPart = (label) => (part ? `${part}: ${label}` : label);

/* ---- tables ---------------------------------------------------------------- */

const SHOWN = 100; // rows before a button shows the rest

/** columns: {head, of: row -> text, number or element, number: bool, sort: row -> key} */
function table(caption, columns, rows) {
  const body = el("tbody");
  const more = el("button", { type: "button", on: { click: () => fill(rows.length) } });
  let order = rows, shown = SHOWN;
  function fill(most) {
    shown = most;
    body.replaceChildren(...order.slice(0, most).map((row) =>
      el("tr", {}, columns.map((column, at) => {
        const value = column.of(row);
        const text = typeof value === "number" ? said(value, column.digits ?? 0) : value;
        const tag = at ? "td" : "th";
        return el(tag, { class: column.number ? "n" : null, scope: at ? null : "row" }, text);
      }))));
    more.hidden = most >= rows.length;
    more.textContent = `Show all ${said(rows.length)} rows`;
  }
  const heads = columns.map((column) => {
    const key = column.sort || (column.number && column.of);
    if (!key || rows.length < 2) return el("th", { scope: "col", class: column.number ? "n" : null }, column.head);
    const head = el("th", { scope: "col", class: column.number ? "n" : null });
    head.append(el("button", { type: "button", title: "sort", on: { click: () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      order = [...rows].sort((a, b) => (key(b) - key(a)) * (down ? 1 : -1));
      fill(shown);
    } } }, column.head));
    return head;
  });
  fill(SHOWN);
  const made = el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), body);
  return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": ofPart(caption) }, made), more);
}

function folded(title, ...children) {
  return el("details", {}, el("summary", {}, title), ...children);
}

/* ---- charts ---------------------------------------------------------------- */

const charts = [];
const MANY = 1500; // shapes from which a canvas draws them, not elements

/** A chart that follows its holder's width and the theme; option: () -> of ECharts. */
function chart(label, height, option, count) {
  const holder = el("div", { class: "chart", role: "img", "aria-label": ofPart(label), style: { height: `${height}px` } });
  const one = { holder, option, made: null, after: [] };
  one.start = () => {
    one.made = drawing.init(holder, null, { renderer: count > MANY ? "canvas" : "svg" });
    one.draw();
    new ResizeObserver(() => { one.made.resize(); one.after.forEach((call) => call()); }).observe(holder);
  };
  one.draw = () => {
    if (!one.made) return;
    one.made.setOption({ animation: false, textStyle: { fontFamily: "inherit", color: colour("soft") }, ...option() }, true);
    one.after.forEach((call) => call());
  };
  charts.push(one);
  queueMicrotask(() => holder.isConnected && !one.made && one.start());
  return one;
}

const axis = (more) => ({
  axisLine: { lineStyle: { color: colour("line") } },
  axisTick: { lineStyle: { color: colour("line") } },
  splitLine: { lineStyle: { color: colour("grid") } },
  nameTextStyle: { color: colour("soft") },
  ...more,
  axisLabel: { color: colour("soft"), ...(more.axisLabel || {}) },
});

const tip = (formatter) => ({
  confine: true, backgroundColor: colour("card"), borderColor: colour("line"),
  textStyle: { color: colour("ink"), fontSize: 13 }, extraCssText: "max-width:420px;white-space:normal",
  formatter,
});

/** What a tooltip shows. */
function card(title, pairs) {
  return el("div", {}, el("b", {}, title), facts(pairs));
}

/* ---- panels ---------------------------------------------------------------- */

const panels = [];

/** fill: (section) -> nothing, called when the panel comes near the screen. */
function panel(id, title, about, fill) {
  const section = el("section", { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), about ? el("p", { class: "soft" }, about) : null);
  const one = { id, title, section, done: false, fill: () => {
    if (one.done) return;
    one.done = true;
    section.style.minHeight = "";
    fill(section);
  } };
  section.style.minHeight = "320px";
  panels.push(one);
}

function showAll() {
  panels.forEach((one) => one.fill());
}

function start(head) {
  const stored = matchMedia("(prefers-color-scheme: dark)");
  const theme = (name) => {
    document.documentElement.dataset.theme = name;
    charts.forEach((one) => one.draw());
    document.dispatchEvent(new Event("theme"));
  };
  document.documentElement.dataset.theme = stored.matches ? "dark" : "light";
  stored.addEventListener("change", (event) => theme(event.matches ? "dark" : "light"));
  const button = el("button", { type: "button", class: "theme", on: { click: () =>
    theme(isDark() ? "light" : "dark") } }, "Light or dark");
  const links = el("nav", { "aria-label": "Panels" }, el("ul", {}, panels.map((one) =>
    el("li", {}, el("a", { href: `#${one.id}` }, one.title)))));
  const main = el("main", { id: "main" }, panels.map((one) => one.section));
  document.body.prepend(el("a", { class: "skip", href: "#main" }, "Skip to the panels"),
    el("header", {}, el("div", { class: "top" }, ...head.top, button), head.tiles, links), main);
  document.body.append(head.foot);
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) setTimeout(panels.find((one) => one.section === entry.target).fill);
    }
  }, { rootMargin: "300px" });
  panels.forEach((one) => seen.observe(one.section));
  addEventListener("beforeprint", () => { showAll(); document.querySelectorAll("details").forEach((one) => { one.open = true; }); });
}
