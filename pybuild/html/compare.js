"use strict";
/* Two builds side by side: what changed in bytes, instructions, kernels, options. */

const found = data.comparison;
const names = found.names[0] === found.names[1] ? ["A", "B"] : found.names;
const sides = [data.one, data.other];
const signed = (n) => (n ? `${n > 0 ? "+" : "−"}${said(Math.abs(n))}` : "");

/** A difference, green where it is less. */
function change(one, other) {
  const by = other - one;
  if (!by) return "";
  const part = one ? ` (${by > 0 ? "+" : "−"}${said(Math.abs((100 * by) / one), 1)} %)` : "";
  return el("span", { class: by > 0 ? "up" : "down" }, `${signed(by)}${part}`);
}

panel("figures", "Figures", "Less is green.", (section) => {
  section.append(table("All figures", [
    { head: "figure", of: (row) => row.what },
    { head: names[0], of: (row) => row.one, number: true },
    { head: names[1], of: (row) => row.other, number: true },
    { head: "difference", number: true, sort: (row) => row.other - row.one, of: (row) => change(row.one, row.other) },
  ], found.figures));
});

panel("memory", "Memory over time", "Both builds have the same scale.", (section) => {
  const there = sides.map((report, i) => [names[i], report]).filter(([, report]) => report.memory);
  const count = Math.max(...there.map(([, report]) => report.memory.regions.length));
  for (let region = 0; region < count; region++) {
    const those = there.filter(([, report]) => report.memory.regions[region]?.bytes);
    const most = Math.max(...those.map(([, report]) => report.memory.regions[region].bytes), 1);
    section.append(el("div", { class: "pair" }, those.map(([name, report]) => {
      const rows = layerRows(report), hues = operatorHues(rows), ops = new Map();
      for (const row of rows) for (const out of row.node.outputs) ops.set(row.tensors.get(out)?.short ?? out, hues.get(row.op));
      return memoryMap(`${name}, ${report.memory.regions[region].name}`, report.memory, region, most, ops);
    })));
  }
});

panel("layers", "Layers", found.layers.length ? "Only layers that differ are listed." : "All layers are the same.", (section) => {
  if (!found.layers.length) return;
  const spent = (row, side) => row[side]?.instructions ?? 0;
  const option = () => ({
    grid: { left: 64, right: 14, top: 30, bottom: 64 },
    legend: { data: names, right: 0, top: 0, textStyle: { color: colour("soft") } },
    tooltip: { ...tip((its) => card(found.layers[its[0].dataIndex].layer, its.map((it) => [it.seriesName, `${said(it.value)} instructions`]))), trigger: "axis" },
    xAxis: axis({ type: "category", data: found.layers.map((row) => row.layer), axisLabel: { rotate: 38, fontSize: 11, width: 96, overflow: "truncate" } }),
    yAxis: axis({ type: "value", name: "instructions", axisLabel: { formatter: brief } }),
    series: ["one", "other"].map((side, i) => ({ id: side, name: names[i], type: "bar", itemStyle: { color: hue(i), borderRadius: [3, 3, 0, 0] },
      data: found.layers.map((row) => spent(row, side)) })),
  });
  section.append(chart("Instructions of the layers that differ; the table below has the numbers.", 320, option, 2 * found.layers.length).holder,
    table("Layers that differ", [
      { head: "layer", of: (row) => row.layer }, { head: "operator", of: (row) => row.op },
      { head: `kernel, ${names[0]}`, of: (row) => el("code", {}, row.one ? row.one.kernel : "no such layer") },
      { head: `kernel, ${names[1]}`, of: (row) => el("code", {}, row.other ? row.other.kernel : "no such layer") },
      { head: names[0], number: true, of: (row) => spent(row, "one") }, { head: names[1], number: true, of: (row) => spent(row, "other") },
      { head: "instructions", number: true, sort: (row) => spent(row, "other") - spent(row, "one"), of: (row) => change(spent(row, "one"), spent(row, "other")) },
      { head: "weights", number: true, sort: (row) => (row.other?.weights ?? 0) - (row.one?.weights ?? 0), of: (row) => change(row.one?.weights ?? 0, row.other?.weights ?? 0) },
    ], found.layers));
});

panel("code", "Code", found.kernels.length ? "Only kernels that differ are listed, in estimated bytes." : "All kernels are the same.", (section) => {
  if (!found.kernels.length) return;
  section.append(table("Kernels that differ", [
    { head: "kernel", of: (row) => el("code", {}, row.name) },
    { head: names[0], number: true, sort: (row) => row.one ?? 0, of: (row) => (row.one === null ? "" : said(row.one)) },
    { head: names[1], number: true, sort: (row) => row.other ?? 0, of: (row) => (row.other === null ? "" : said(row.other)) },
    { head: "difference", number: true, sort: (row) => (row.other ?? 0) - (row.one ?? 0), of: (row) => change(row.one ?? 0, row.other ?? 0) },
  ], found.kernels));
});

panel("options", "Options", found.options.length ? "Only options that differ are listed." : "All options are the same.", (section) => {
  if (found.options.length) section.append(table("Options that differ", [
    { head: "option", of: (row) => row.name },
    { head: names[0], of: (row) => el("code", {}, JSON.stringify(row.one)) }, { head: names[1], of: (row) => el("code", {}, JSON.stringify(row.other)) },
  ], found.options));
  section.append(el("p", {}, "These make them again:"), el("pre", { tabindex: "0" }, found.commands.join("\n")));
});

const shown = ["RAM", "flash, code as estimated", "code, as estimated", "instructions, as estimated", "from begin to end, as estimated"];
start({
  top: [el("div", {}, el("h1", {}, `${names[0]} and ${names[1]}`), el("p", { class: "soft" }, found.commands.map((command) => el("span", {}, el("code", {}, command), el("br")))))],
  tiles: el("div", { class: "tiles" }, found.figures.filter((row) => shown.includes(row.what)).map((row) =>
    el("div", { class: "tile" }, el("b", {}, brief(row.other)), el("span", {}, row.what), el("span", {}, `${brief(row.one)} before `, change(row.one, row.other))))),
  foot: el("footer", {}, el("p", {}, `The data of this page is JSON, schema ${data.schema}.`),
    folded("Licences of what draws this page", el("pre", { tabindex: "0" }, document.getElementById("licences").textContent))),
});
