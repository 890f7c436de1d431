"use strict";
/* Flash as a tree map, plans as a curve, quantisation by layer. */

/** What lies in flash: {name, bytes, group, layer}. */
function flashParts(report, measured) {
  const parts = report.weights.map((row) => ({ name: row.symbol, bytes: row.bytes, group: "weights",
    layer: row.layers[0] || "shared", brief: row.symbol.split("_").pop() }));
  const rest = report.flash.weights - total(parts, (part) => part.bytes);
  if (rest > 0) parts.push({ name: "parameter image", bytes: rest, group: "weights", layer: "parameters" });
  parts.push({ name: "steps, arguments, descriptions", bytes: report.flash.tables - report.flash.stages, group: "tables", layer: "" });
  if (report.flash.stages) parts.push({ name: "what advances together", bytes: report.flash.stages, group: "tables", layer: "" });
  for (const row of report.code) parts.push({ name: row.name, bytes: row.bytes, group: "code", layer: "" });
  const flash = measured?.flash;
  if (flash) parts.push({ name: "crt", bytes: flash.runtime, group: "runtime", layer: "" });
  return parts.filter((part) => part.bytes > 0);
}

const GROUPS = { weights: "weights and tables of layers", tables: "tables", code: "code of kernels, as estimated", runtime: "crt, as measured" };

function flashMap(parts) {
  const option = () => ({
    tooltip: tip((it) => card(it.name, [["bytes", said(it.value)], ["of all", share(it.value, total(parts, (p) => p.bytes))]])),
    series: [{
      id: "flash", type: "treemap", roam: false, nodeClick: false, breadcrumb: { show: false }, left: 0, right: 0, top: 0, bottom: 0,
      label: { fontSize: 11, lineHeight: 14, overflow: "truncate", formatter: (it) => `${it.data.brief}\n${size(it.value)}` },
      upperLabel: { show: true, height: 20, fontSize: 11, lineHeight: 20, overflow: "truncate", formatter: (it) => `${it.name}  ${size(it.value)}` },
      levels: [{ itemStyle: { gapWidth: 4, borderWidth: 0, borderColor: colour("card") }, upperLabel: { show: false } },
        { itemStyle: { gapWidth: 2, borderWidth: 2 } }, { itemStyle: { gapWidth: 1, borderWidth: 1 } }, {}],
      data: Object.keys(GROUPS).filter((group) => parts.some((part) => part.group === group)).map((group, number) => {
        const fill = hue(number), own = parts.filter((part) => part.group === group);
        const leaf = (part) => ({ name: part.name, brief: part.brief || part.name, value: part.bytes, itemStyle: { color: fill, borderColor: colour("card") },
          label: { color: inkOn(fill) } });
        const layers = [...new Set(own.map((part) => part.layer))];
        const children = layers.length < 2 ? own.map(leaf) : layers.map((layer) => ({ name: layer,
          itemStyle: { color: fill, borderColor: fill }, upperLabel: { color: inkOn(fill) },
          children: own.filter((part) => part.layer === layer).map(leaf) }));
        return { name: GROUPS[group], itemStyle: { color: fill, borderColor: fill }, upperLabel: { color: inkOn(fill) }, children };
      }),
    }],
  });
  return chart("Tree map of what lies in flash; the table below has the numbers.", 360, option, parts.length);
}

function flashTable(parts) {
  const whole = total(parts, (part) => part.bytes);
  return table("What lies in flash", [
    { head: "what", of: (part) => part.name },
    { head: "kind", of: (part) => GROUPS[part.group] },
    { head: "layer", of: (part) => part.layer },
    { head: "bytes", of: (part) => part.bytes, number: true },
    { head: "of all", number: true, sort: (part) => part.bytes, of: (part) => share(part.bytes, whole) },
  ], [...parts].sort((a, b) => b.bytes - a.bytes));
}

const told = (point) => (point.rows ? `${plural(point.rows, "layer")} by rows` : "all layers whole");

function front(plans) {
  const { points, chosen, bound, boards } = plans;
  const most = Math.max(chosen.ram, ...points.map((point) => point.ram)) * 1.15;
  const sizes = new Map(); // boards by their RAM
  for (const [name, ram] of Object.entries(boards)) if (ram <= most) sizes.set(ram, [...(sizes.get(ram) || []), name]);
  const near = [...sizes.entries()].map(([ram, names]) => [names.join(", "), ram]);
  const option = () => ({
    grid: { left: 64, right: 30, top: 40, bottom: 46 },
    tooltip: tip((it) => {
      const point = it.seriesId === "chosen" ? chosen : points[it.dataIndex];
      return point && card(`${said(point.ram)} bytes`, [["instructions", `${said(point.instructions, 3)} times the fastest plan's`],
        ["layers", told(point)], ["option", `--ram-limit ${point.limit}`]]);
    }),
    xAxis: axis({ type: "value", name: "RAM", nameLocation: "middle", nameGap: 28, min: 0, max: Math.ceil(most / stride(most)) * stride(most), interval: stride(most), axisLabel: { formatter: size } }),
    yAxis: axis({ type: "value", name: "instructions, as a multiple of the fastest plan's", scale: true, nameTextStyle: { align: "left", color: colour("soft") }, min: (v) => Math.min(1, v.min), axisLabel: { formatter: (y) => said(y, 3) } }),
    series: [
      { id: "plans", type: "line", step: "end", symbolSize: 9, symbol: "circle", lineStyle: { color: colour("accent"), width: 2 }, itemStyle: { color: colour("accent") },
        data: points.map((point) => [point.ram, point.instructions]),
        markLine: { symbol: "none", silent: true, label: { color: colour("soft"), formatter: (it) => it.name },
          lineStyle: { type: "dashed", color: colour("quiet") },
          data: [...near.map(([name, ram]) => ({ name, xAxis: ram })), { name: "least by rows", xAxis: bound }] } },
      { id: "chosen", type: "scatter", symbol: "diamond", symbolSize: 20, itemStyle: { color: colour("warn"), borderColor: colour("card"), borderWidth: 2 },
        label: { show: true, formatter: "this build", position: "top", distance: 8, color: colour("warn"), fontWeight: 600, textBorderColor: colour("card"), textBorderWidth: 3 },
        data: [[chosen.ram, chosen.instructions]], z: 4 },
    ],
  });
  return chart("RAM against instructions of all plans worth having; the table below has the numbers.", 320, option, points.length);
}

function frontTable(plans) {
  return table("Plans, the smallest first", [
    { head: "RAM", of: (point) => said(point.ram) },
    { head: "instructions, of the fastest", of: (point) => point.instructions, number: true, digits: 4 },
    { head: "layers", of: told },
    { head: "asked for with", of: (point) => el("code", {}, `--ram-limit ${point.limit}`) },
    { head: "chosen", of: (point) => (point.ram === plans.chosen.ram ? "this build" : "") },
  ], plans.points);
}

function noiseChart(rows) {
  const option = () => ({
    grid: { left: 64, right: 14, top: 24, bottom: 64 },
    tooltip: tip((it) => card(rows[it.dataIndex].short, [["operator", rows[it.dataIndex].op], ["in", rows[it.dataIndex].kind || rows[it.dataIndex].dtype],
      ["signal to noise", rows[it.dataIndex].snr === null ? "none lost" : `${said(rows[it.dataIndex].snr, 1)} dB`]])),
    xAxis: axis({ type: "category", data: rows.map((row) => row.short), axisLabel: { rotate: 38, fontSize: 11, width: 96, overflow: "truncate" } }),
    yAxis: axis({ type: "value", name: "signal to noise, dB", nameTextStyle: { align: "left", color: colour("soft") } }),
    series: [{ id: "noise", type: "bar", data: rows.map((row) => ({ value: row.snr ?? 0,
      itemStyle: { color: (row.kind || row.dtype) === "float32" ? colour("quiet") : row.snr !== null && row.snr < 20 ? colour("warn") : colour("accent"), borderRadius: [3, 3, 0, 0] } })) }],
  });
  return chart("Signal to noise by layer; the table below has the numbers.", 280, option, rows.length);
}
