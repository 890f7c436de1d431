"use strict";
/* What each layer costs: instructions beside what its core cannot be below, the kernel
   that was chosen, and why the others were not. */

/** A row for each node: all that the report says of it, by its parts. */
function layerRows(report, { measured = null, samples = null } = {}) {
  const tensors = new Map(report.graph.tensors.map((tensor) => [tensor.name, tensor]));
  const noise = errorsOf(report, samples);
  const spent = new Map((measured?.layers || []).map((row) => [row.name, row]));
  return report.layers.map((layer, number) => {
    const node = report.graph.nodes[number];
    const kernel = node.kernel === null ? null : report.kernels[node.kernel];
    const counted = spent.get(layer.name);
    return { ...layer, number, node, kernel, measured: counted, tensors,
      instructions: counted ? counted.instructions : kernel ? kernel.instructions : 0,
      cycles: counted?.cycles ?? null, noise: noise.get(layer.name) };
  });
}

/** Signal to noise of layers, by name: over samples, else as it was quantised. */
function errorsOf(report, samples) {
  const rows = samples ? samples.layers.filter((row) => row.error !== null) : report.quantisation?.layers || [];
  return new Map([...rows].reverse().map((row) => [row.name, row])); // of several outputs the first
}

/** Numbers of colours: operators in the order of what they cost. */
function operatorHues(rows) {
  const cost = new Map();
  for (const row of rows) cost.set(row.op, (cost.get(row.op) || 0) + row.instructions + 1);
  return new Map([...cost.entries()].sort((a, b) => b[1] - a[1]).map(([op], i) => [op, Math.min(i, 9)]));
}

/** How an alternative compares with what was chosen. */
function lost(kernel, other) {
  const slower = other.instructions - kernel.instructions, larger = other.bytes - kernel.bytes;
  const times = kernel.instructions ? ` (${said(other.instructions / kernel.instructions, 2)} times)` : "";
  const parts = [];
  if (slower) parts.push(`${said(Math.abs(slower))} instructions ${slower > 0 ? "more" : "fewer"}${times}`);
  if (larger) parts.push(`${said(Math.abs(larger))} bytes of code ${larger > 0 ? "more" : "fewer"}`);
  return parts.join(", ") || "costs the same";
}

function alternatives(kernel) {
  if (!kernel) return "";
  if (!kernel.alternatives.length) return "none";
  return folded(String(kernel.alternatives.length), el("ul", {}, kernel.alternatives.map((other) =>
    el("li", {}, el("code", {}, other.kernel), `: ${lost(kernel, other)}`))));
}

function costChart(rows, hues, word) {
  const option = () => ({
    grid: { left: 64, right: 14, top: 24, bottom: rows.length > 60 ? 84 : 62 },
    tooltip: tip((it) => {
      const row = rows[it.dataIndex];
      return card(row.short, [["operator", row.op], ["MACs", said(row.macs)], ["instructions", said(row.instructions)],
        ["per MAC", row.macs ? said(row.instructions / row.macs, 3) : ""], ["at the least", row.node.bound ? said(row.node.bound) : ""],
        ["kernel", row.kernel?.kernel]]);
    }),
    xAxis: axis({ type: "category", data: rows.map((row) => row.short), axisLabel: { rotate: 38, fontSize: 11, width: 96, overflow: "truncate" } }),
    yAxis: axis({ type: "value", name: word, nameTextStyle: { align: "left", color: colour("soft") }, axisLabel: { formatter: brief } }),
    dataZoom: rows.length > 60 ? [{ type: "slider", startValue: 0, endValue: 59, height: 18, bottom: 6 }] : [],
    series: [
      { id: "cost", type: "bar", large: rows.length > 2000, barCategoryGap: "25%",
        data: rows.map((row) => ({ value: row.instructions, itemStyle: { color: hue(hues.get(row.op)), borderRadius: [3, 3, 0, 0] } })) },
      { id: "bound", type: "scatter", symbol: "rect", symbolSize: [rows.length > 30 ? 10 : 18, 3], silent: true,
        itemStyle: { color: colour("ink") }, data: rows.map((row) => (row.node.bound ? row.node.bound : "-")) },
    ],
  });
  return chart(`Bars: ${word} of each layer; dashes: the least that its core takes. The table below has the numbers.`, 330, option, rows.length);
}

function costTable(rows, whole) {
  const most = rows.reduce((high, row) => Math.max(high, row.instructions), 1);
  const measured = rows.some((row) => row.measured), columns = [
    { head: "layer", of: (row) => row.short },
    { head: "operator", of: (row) => row.op },
    { head: "MACs", of: (row) => row.macs, number: true },
    { head: "instructions", number: true, sort: (row) => row.instructions, of: (row) => el("span", {}, said(row.instructions),
      el("span", { class: "part", style: { width: `${(100 * row.instructions) / most}%` } })) },
    { head: "of all", number: true, sort: (row) => row.instructions, of: (row) => share(row.instructions, whole) },
    { head: "per MAC", number: true, sort: (row) => row.instructions / (row.macs || Infinity), of: (row) => (row.macs ? said(row.instructions / row.macs, 3) : "") },
    { head: "core's least", number: true, sort: (row) => row.node.bound / (row.macs || Infinity), of: (row) => (row.node.bound ? said(row.node.bound / row.macs, 3) : "") },
    { head: "kernel", of: (row) => (row.kernel ? el("code", {}, row.kernel.kernel) : "") },
    { head: "code", number: true, sort: (row) => row.kernel?.bytes || 0, of: (row) => (row.kernel ? said(row.kernel.bytes) : "") },
    { head: "why", of: (row) => row.kernel?.reason || "" },
    { head: "others", of: (row) => alternatives(row.kernel) },
  ];
  if (measured) columns.splice(5, 0, { head: "cycles", number: true, sort: (row) => row.cycles || 0, of: (row) => (row.cycles === null ? "" : said(row.cycles)) });
  return table(measured ? "Layers, as counted; code in bytes, as estimated" : "Layers; instructions and bytes of code as estimated", columns, rows);
}
