"use strict";
/* Many builds: which no other beats. What is shown, and what counts, is chosen. */

const MEASURES = [
  { key: "ram", name: "RAM", unit: "bytes" }, { key: "flash", name: "flash", unit: "bytes" },
  { key: "instructions", name: "instructions" }, { key: "cycles", name: "cycles" },
  { key: "accuracy", name: "accuracy", more: true, percent: true },
  { key: "error", name: "error", percent: true },
];
const built = data.rows.filter((row) => !row.problems.length);
const failed = data.rows.filter((row) => row.problems.length);
const told = MEASURES.filter((one) => built.some((row) => row[one.key] !== null));

function spell(value) {
  if (value === null || value === undefined || value === "" || value.length === 0) return "–";
  if (Array.isArray(value)) return value.map(spell).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([name, each]) => `${name}=${spell(each)}`).join(", ") || "–";
  return String(value);
}
const figure = (measure, row) => (row[measure.key] === null ? "–" : measure.percent ? `${said(100 * row[measure.key], 2)} %` : said(row[measure.key]));

/** What rows differ in: a name, and the text of a row's value. */
const axes = [["model", (row) => row.model], ["board", (row) => spell(row.board)],
  ...[...new Set(data.rows.flatMap((row) => Object.keys(row.options)))].filter((word) => word !== "on")
    .map((word) => [word, (row) => spell(row.options[word])])]
  .map(([name, of]) => ({ name, of, values: [...new Set(data.rows.map(of))] })).filter((axis) => axis.values.length > 1);

const SCALES = [{ key: "", name: "as fits" }, { key: "linear", name: "linear" }, { key: "log", name: "logarithmic" }];
const state = { left: new Map(axes.map((axis) => [axis.name, new Set()])), x: told[0], y: told.find((one) => one.key === "instructions") || told[0],
  counts: new Set(told.filter((one) => ["ram", "flash", "instructions"].includes(one.key))), across: false, only: false, by: axes[0], scale: SCALES[0] };

const visible = (row) => axes.every((axis) => !state.left.get(axis.name).has(axis.of(row)));

/** The Pareto-optimal rows. */
function front(rows) {
  const counts = [...state.counts], points = rows.filter((row) => counts.every((one) => row[one.key] !== null))
    .map((row) => ({ row, at: counts.map((one) => (one.more ? -row[one.key] : row[one.key])) }));
  const groups = new Map();
  for (const point of points) {
    const name = state.across ? "" : point.row.model;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(point);
  }
  const best = new Set();
  for (const group of groups.values()) {
    const kept = [];
    group.sort((a, b) => { const i = a.at.findIndex((n, k) => n !== b.at[k]); return i < 0 ? 0 : a.at[i] - b.at[i]; });
    for (const point of group) {
      if (kept.some((other) => other.at.every((n, i) => n <= point.at[i]) && other.at.some((n, i) => n < point.at[i]))) continue;
      kept.push(point);
      best.add(point.row);
    }
  }
  return best;
}

let shown = [], best = new Set(), spots = null, holder = null, status = null;

function changed() {
  const rows = built.filter(visible);
  best = front(rows);
  shown = state.only ? rows.filter((row) => best.has(row)) : rows;
  status.textContent = `${plural(rows.length, "build")}, ${said(best.size)} of them Pareto-optimal`;
  spots.draw();
  holder.replaceChildren(rowsTable());
}

function named(row) {
  return axes.filter((axis) => axis.name !== "board" || row.board).map((axis) => [axis.name, axis.of(row)]);
}

const DECADES = 100; // the greatest by the least, from which an axis is logarithmic

/** Whether an axis is: as is chosen, or where what is shown spans more than two decades. */
function logarithmic(one) {
  if (one.percent || state.scale.key === "linear") return false;
  const values = shown.map((row) => row[one.key]).filter((n) => n !== null);
  const least = Math.min(...values);
  return values.length > 1 && least > 0 && (state.scale.key === "log" || Math.max(...values) / least > DECADES);
}

function spotsOption() {
  const { x, y, by } = state, factor = (one) => (one.percent ? 100 : 1);
  const axisOf = (one, place) => axis({ type: logarithmic(one) ? "log" : "value", scale: true, name: `${one.name}${one.percent ? ", %" : one.unit ? `, ${one.unit}` : ""}`,
    nameLocation: place, nameGap: place === "middle" ? 30 : 12, axisLabel: { formatter: (n) => (one.percent ? said(n, 2) : one.unit ? said(n) : brief(n)) },
    interval: undefined });
  const names = by ? by.values : [""];
  const series = names.flatMap((name, number) => [false, true].map((good) => ({
    id: `${name}/${good}`, name, type: "scatter", symbol: good ? "circle" : "emptyCircle", symbolSize: good ? 13 : 8, cursor: "pointer",
    itemStyle: { color: hue(number), opacity: good ? 0.95 : 0.6 }, z: good ? 3 : 2,
    data: shown.filter((row) => best.has(row) === good && (!by || by.of(row) === name) && row[x.key] !== null && row[y.key] !== null)
      .map((row) => ({ value: [row[x.key] * factor(x), row[y.key] * factor(y)], row })),
  })));
  return {
    grid: { left: 84, right: 24, top: 44, bottom: 52 },
    legend: { data: names.slice(0, 12), top: 0, right: 0, type: "scroll", left: 160, textStyle: { color: colour("soft") } },
    tooltip: tip((it) => card(it.data.row.model, [...named(it.data.row).slice(1), ...told.map((one) => [one.name, figure(one, it.data.row)]), ["", "click: its report"]])),
    xAxis: axisOf(x, "middle"), yAxis: axisOf(y, "end"), series,
  };
}

/** A short value stays on one line. */
const whole = (text) => (text.length <= 16 ? el("span", { class: "whole" }, text) : text);

function rowsTable() {
  const link = (row) => (row.report ? el("a", { href: row.report }, row.model) : row.model);
  const rows = [...shown].sort((a, b) => Number(best.has(b)) - Number(best.has(a)));
  return table("Builds, Pareto-optimal ones first", [
    { head: "model", of: link },
    ...axes.filter((axis) => axis.name !== "model").map((axis) => ({ head: axis.name, of: (row) => whole(axis.of(row)) })),
    ...told.map((one) => ({ head: one.name, number: true, sort: (row) => row[one.key] ?? (one.more ? -Infinity : Infinity), of: (row) => figure(one, row) })),
    { head: "Pareto-optimal", of: (row) => (best.has(row) ? "yes" : "no") },
    { head: "command", of: (row) => (row.command ? folded("show", el("code", {}, row.command)) : "–") },
  ], rows);
}

function chooser(label, list, chosen, act) {
  const select = el("select", { on: { change: () => { act(list[select.selectedIndex]); changed(); } } }, list.map((one) => el("option", { selected: one === chosen }, one.name)));
  return el("label", {}, `${label} `, select);
}

function check(label, on, act) {
  const box = el("input", { type: "checkbox", checked: on, on: { change: () => { act(box.checked); changed(); } } });
  return el("label", {}, box, ` ${label}`);
}

const choice = (name, ...boxes) => el("fieldset", {}, el("legend", {}, name), boxes);

if (built.length) panel("builds", "Pareto-optimal builds", "Each point is a build. Filled points are Pareto-optimal: no other build of the same model is at least as good in all counted figures and better in one. Click a point, or a name in the table, to open its report.", (section) => {
  status = el("p", { role: "status" });
  holder = el("div");
  spots = chart("Builds by two measures; the table below has the numbers and the links.", 460, spotsOption, 2000);
  const press = () => spots.made && spots.made.on("click", (it) => it.data?.row?.report && open(it.data.row.report, "_self"));
  section.append(
    el("div", { class: "bar" }, chooser("across", told, state.x, (one) => { state.x = one; }), chooser("up", told, state.y, (one) => { state.y = one; }),
      chooser("axes", SCALES, state.scale, (one) => { state.scale = one; }),
      axes.length ? chooser("colour", axes, state.by, (one) => { state.by = one; }) : null),
    el("div", { class: "bar" }, choice("counts", ...told.map((one) => check(`${one.name}${one.more ? ", more is better" : ""}`, state.counts.has(one), (on) => state.counts[on ? "add" : "delete"](one)))),
      choice("compare", check("models, too", state.across, (on) => { state.across = on; }), check("show only Pareto-optimal builds", state.only, (on) => { state.only = on; }))),
    el("div", { class: "bar" }, axes.map((axis) => choice(axis.name, ...axis.values.map((value) => check(value, true, (on) => state.left.get(axis.name)[on ? "delete" : "add"](value)))))),
    status, spots.holder, holder);
  changed();
  setTimeout(press);
});

if (failed.length) panel("failed", "Failed builds", "", (section) => {
  section.style.minHeight = "";
  section.append(table("The reason of each", [
    { head: "model", of: (row) => row.model },
    ...axes.filter((axis) => axis.name !== "model").map((axis) => ({ head: axis.name, of: axis.of })),
    { head: "why", of: (row) => row.problems.map((one) => `${one.where}: ${one.what}${one.hint ? `. Hint: ${one.hint}` : ""}`).join("; ") },
  ], failed));
});

const all = built.length ? front(built) : new Set();
const tile = (value, name, more) => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name), more ? el("span", {}, more) : null);
start({
  top: [el("div", {}, el("h1", {}, data.title), el("p", { class: "soft" }, built.some((row) => row.board) ? "Instructions and cycles as counted on simulated boards, where a board is named; else as estimated." : "Instructions, cycles and code as estimated."))],
  tiles: el("div", { class: "tiles" }, tile(said(data.rows.length), "builds"), tile(said(all.size), "Pareto-optimal", [...state.counts].map((one) => one.name).join(", ")),
    tile(said(new Set(data.rows.map((row) => row.model)).size), "models"), failed.length ? tile(said(failed.length), "failed") : null),
  foot: el("footer", {}, el("p", {}, `The same rows are in sweep.jsonl beside this page. The data of this page is JSON, schema ${data.schema}.`),
    folded("Licences of what draws this page", el("pre", { tabindex: "0" }, document.getElementById("licences").textContent))),
});
