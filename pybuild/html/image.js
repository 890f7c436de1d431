"use strict";
/* The page of several models in one image: what they share, and a part for each. */

const { image, parts } = data;
const models = Object.entries(parts);
const shades = new Map(models.map(([name], i) => [name, i]));

panel("models", "Models", "The needs of each model by itself; the needs of the whole image are above.", (section) => {
  section.style.minHeight = "";
  const spent = (one) => total(one.report.kernels, (row) => row.instructions);
  section.append(table("Models of the image", [
    { head: "model", of: ([name]) => el("a", { href: `#${name}-cost` }, name) },
    { head: "arena", of: ([, one]) => one.report.ram.arena, number: true },
    { head: "instance", of: ([, one]) => one.report.ram.instance, number: true },
    { head: "weights", of: ([, one]) => one.report.flash.weights, number: true },
    { head: "tables", of: ([, one]) => one.report.flash.tables, number: true },
    { head: "MACs", of: ([, one]) => one.report.macs, number: true },
    { head: "instructions", of: ([, one]) => spent(one), number: true },
    { head: "takes turns with", of: ([name]) => image.exclusive.filter((group) => group.includes(name))
      .flatMap((group) => group.filter((other) => other !== name)).join(", ") },
  ], models));
});

const regionNames = [...new Set(image.memory.map((block) => block.region))];
const heldBy = (block) => block.model || block.holds;

panel("regions", "Memory of the image", "Each bar is the memory of one model, or a tensor that one model passes to another, at its address. Models that take turns share the same bytes. The report of each model shows what its memory holds.", (section) => {
  for (const region of regionNames) section.append(el("h3", {}, `${region}: ${said(regionBytes(region))} bytes`), regionMap(region).holder);
  section.append(table("What lies where", [
    { head: "holds", of: heldBy }, { head: "region", of: (block) => block.region },
    { head: "at", of: (block) => block.at, number: true }, { head: "bytes", of: (block) => block.bytes, number: true },
  ], image.memory));
});

function regionBytes(region) {
  const given = image.regions.find((one) => one.name === region);
  return given ? given.bytes : image.ram.arena;
}

function regionMap(region) {
  const blocks = image.memory.filter((block) => block.region === region), most = Math.max(regionBytes(region), 1);
  const fill = (block) => (block.model ? hue(shades.get(block.model)) : colour("hatch"));
  const option = () => ({
    grid: { left: 110, right: 20, top: 8, bottom: 44 },
    tooltip: tip((it) => { const block = blocks[it.dataIndex]; return card(heldBy(block), [["at", `${said(block.at)} to ${said(block.at + block.bytes)}`], ["bytes", said(block.bytes)]]); }),
    xAxis: axis({ type: "value", min: 0, max: most, interval: stride(most), axisLabel: { formatter: size, showMaxLabel: false } }),
    yAxis: axis({ type: "category", inverse: true, data: blocks.map(heldBy), axisLabel: { width: 100, overflow: "truncate" } }),
    series: [{ id: `region-${region}`, type: "custom", encode: { x: [1, 2], y: 0 }, data: blocks.map((block, i) => [i, block.at, block.at + block.bytes]),
      renderItem: (params, api) => {
        const a = api.coord([api.value(1), api.value(0)]), b = api.coord([api.value(2), api.value(0)]), high = Math.min(api.size([0, 1])[1] * 0.7, 30);
        return { type: "rect", shape: { x: a[0], y: a[1] - high / 2, width: Math.max(b[0] - a[0], 1), height: high, r: 3 }, style: { fill: fill(blocks[params.dataIndex]) } };
      } }],
  });
  return chart(`What lies in ${region}; the table below has the numbers.`, 60 + 40 * Math.max(blocks.length, 1), option, blocks.length);
}

panel("shared", "What models share", `${said(image.flash.saved)} bytes of flash are saved because models share equal weights.`, (section) => {
  section.style.minHeight = "";
  if (!image.shared.length) section.append(el("p", {}, "No kernel and no constant is the same in two models."));
  else section.append(table("Kernels and constants of several models", [
    { head: "name", of: (row) => el("code", {}, row.symbol) }, { head: "kind", of: (row) => row.kind },
    { head: "bytes", of: (row) => (row.kind === "kernel" ? "" : said(row.bytes)), number: true, sort: (row) => row.bytes },
    { head: "models", of: (row) => row.models.join(", ") },
  ], image.shared));
});

for (const [name, one] of models) addPanels(one, name);

start({
  top: [el("div", {}, el("h1", {}, image.name), el("p", { class: "soft" }, `${plural(models.length, "model")} in one image, for ${models[0][1].report.target}`))],
  tiles: el("div", { class: "tiles" },
    tile(`${said(image.ram.arena + image.ram.instance)} B`, "RAM", `arena ${said(image.ram.arena)}, instances ${said(image.ram.instance)}`),
    tile(`${said(image.ram.separate)} B`, "arena, if none took turns"),
    tile(`${said(image.flash.weights + image.flash.tables)} B`, "flash, without code", `weights ${said(image.flash.weights)}, tables ${said(image.flash.tables)}`),
    tile(`${said(image.flash.saved)} B`, "saved by sharing"),
    tile(said(models.length), "models", models.map(([name]) => name).join(", "))),
  foot: foot(image.provenance.pybuild),
});
