"use strict";
/* What a page shows of one build: its panels, and the figures at its head. */

/** model: whose they are, on a page of several; "": the only one. */
function addPanels(data, model) {
  const report = data.report;
  const own = (id, title, about, fill) => panel(model ? `${model}-${id}` : id, model ? `${model}: ${title}` : title, about, (section) => {
    part = model;
    fill(section);
    part = "";
  });
  const rows = layerRows(report, data);
  const hues = operatorHues(rows);
  const ops = new Map();
  for (const row of rows) for (const name of row.node.outputs) ops.set(row.tensors.get(name)?.short ?? name, hues.get(row.op));
  const spent = total(rows, (row) => row.instructions);
  const counted = Boolean(data.measured);

  if (report.memory) own("memory", "Memory over time",
    "Each rectangle is a tensor or a scratch buffer: its height is bytes, its width the time that it is in use. Where layers advance in lock step, rows come and go within a step.", (section) => {
      const plans = [["This plan", report.memory], ...(data.other ? [[data.other.title, data.other.memory]] : [])];
      section.append(legend(() => [...hues.entries()].slice(0, 9).map(([op, number]) => [op, hue(number)]).concat([["scratch, counters", colour("hatch")], ["inputs", colour("quiet")]])));
      const count = Math.max(...plans.map(([, memory]) => memory.regions.length));
      for (let region = 0; region < count; region++) {
        const there = plans.filter(([, memory]) => memory.regions[region]?.bytes);
        const most = Math.max(...there.map(([, memory]) => memory.regions[region].bytes), 1);
        if (there.length) section.append(el("div", { class: there.length > 1 ? "pair" : null }, there.map(([title, memory]) =>
          memoryMap(`${title}, ${memory.regions[region].name}`, memory, region, most, ops))));
      }
      section.append(folded("As a table", blockTable(report.memory)));
    });

  own("cost", "Cost by layer",
    `${counted ? `Instructions of one inference, counted on ${data.measured.board}` : "Instructions of one inference, as estimated"}; a dash marks what the multiply-accumulates alone take on this core (${report.target}).`, (section) => {
      section.append(legend(() => [...hues.entries()].slice(0, 10).map(([op, number]) => [op, hue(number)])),
        costChart(rows, hues, "instructions").holder, costTable(rows, spent));
    });

  if (report.cores) own("cores", "Cores over time", report.cores.sliced ?
    "A lane for each core: what it computes of each step, and where it waits. Cores meet after each call of a step, at the latest at a dotted line; steps in lock step, whose calls alternate, are drawn one after another." : "", (section) => {
    if (report.cores.sliced) coresPanel(section, report.cores, hues, data.measured);
    else {
      section.style.minHeight = "";
      section.append(el("p", {}, oneCore(report.cores)));
    }
  });

  own("graph", "Graph", "The graph after all passes, read like text: from left to right, row under row.", (section) => graphPanel(section, report, rows, hues, data.passes));

  if (report.bounds?.length) own("bounds", "What holds for any input",
    "If no index depends on data, every input reads and writes the same addresses; if no loop does, every input takes about the same time. Instructions are estimated; crt bench --simulator unicorn gives an upper bound.", (section) => {
    section.style.minHeight = "";
    section.append(boundsTable(report.bounds), report.stack ? el("p", {}, stackOf(report.stack)) : "");
  });
  own("flash", "Flash", "What lies in flash. Code is estimated, and compilers differ; crt, some kilobytes that all models share, is in it where it was measured on a board.", (section) => {
    const parts = flashParts(report, data.measured);
    section.append(flashMap(parts).holder, folded("As a table", flashTable(parts)));
  });

  own("plans", "RAM against instructions", data.plans ? "Each dot is a plan that no other beats in both: the fastest with that much RAM." :
    "This page does not hold the other plans: crt report MODEL computes them.", (section) => {
    if (data.plans) section.append(front(data.plans).holder, folded("As a table", frontTable(data.plans)));
    else section.style.minHeight = "";
  });

  const locked = report.stages.filter((stage) => stage.arrows.length);
  if (locked.length) own("stages", "Stages in lock step", "The same drawing as in the generated C.", (section) => {
    let first = 0;
    for (const stage of report.stages) {
      if (stage.arrows.length) section.append(...stagePicture(report, stage, first));
      first += stage.steps;
    }
  });

  if (data.samples) own("samples", "Accuracy and error by layer",
    `${plural(data.samples.count, "sample")} through this build; error is the root mean square of how far a layer is off ${data.samples.beside}, as a share of what is there. Cut off: values beyond what its integers reach.`,
    (section) => samplesPanel(section, data.samples));

  if (report.quantisation) own("accuracy", "Quantisation", `By ${report.quantisation.method} over ${plural(report.quantisation.samples, "sample")}; error of the outputs ${said(100 * report.quantisation.error, 2)} %.`, (section) => {
    const q = report.quantisation, noisy = [...q.layers];
    if (q.score) section.append(el("p", {}, `${said(q.score.right_quantised)} of ${said(q.score.samples)} samples right, ${said(q.score.right_float)} in float.`));
    section.append(noiseChart(noisy).holder, folded("As a table", table("Layers, the noisiest first", [
      { head: "layer", of: (row) => row.short }, { head: "operator", of: (row) => row.op }, { head: "in", of: (row) => row.kind },
      { head: "signal to noise, dB", of: (row) => (row.snr === null ? "none lost" : said(row.snr, 2)), number: true, sort: (row) => row.snr ?? Infinity },
    ], noisy)));
    for (const row of q.floats) section.append(el("p", {}, `${row.short} (${row.op}) stays float: ${row.reason}`));
  });

  if (report.savings?.length) own("savings", "What would save RAM", "Each option was planned; instructions are the planner's estimate, in times of this build's.",
    (section) => section.append(table("Options, few instructions first", [
      { head: "options", of: (row) => row.options.join(" ") },
      { head: "arena", of: (row) => row.arena, number: true }, { head: "instead of", of: (row) => row.instead, number: true },
      { head: "instructions", of: (row) => row.instructions, number: true, digits: 2 },
    ], report.savings)));

  own("made", "How it was made", "", (section) => {
    const made = report.provenance, options = (group) => Object.entries(made[group] || {}).map(([name, value]) => [name, JSON.stringify(value)]);
    const copied = el("span", { class: "soft", role: "status" });
    if (!report.command) section.append(el("p", {}, "Of a model or of samples that no file has: no command makes it again."));
    else section.append(el("p", {}, "This makes the same again:"), el("pre", { tabindex: "0" }, report.command),
      el("div", { class: "bar" }, el("button", { type: "button", on: { click: async () => {
        await navigator.clipboard?.writeText(report.command);
        copied.textContent = "copied";
      } } }, "Copy"), copied));
    section.append(facts([["pybuild", made.pybuild], ["file", made.model?.file], ["SHA-256", made.model?.sha256], ["equal to", report.reference], ["rounding", report.rounding],
        ["inputs", report.inputs.map((one) => `${one.name} ${one.dtype}[${one.shape.join(",")}]`).join("; ")],
        ["outputs", report.outputs.map((one) => `${one.name} ${one.dtype}[${one.shape.join(",")}]`).join("; ")]]),
      ...["build", "load", "quantise"].filter((group) => options(group).length).map((group) =>
        folded(`Every option of ${group}`, facts(options(group)))));
  });
}

const oneCore = (use) => `One core runs the model: ${said(use.cores)} would take no less time, since meeting after each call costs more than the slices save.`;

const unlessOpen = (count) => (count < 0 ? "your function" : count ?? "");

function boundsTable(bounds) {
  return table("Layers; a sum's room is how many times as large it might be", [
    { head: "layer", of: (row) => row.short },
    { head: "operator", of: (row) => row.op },
    { head: "greatest sum", number: true, of: (row) => row.sum ?? "" },
    { head: "room", number: true, digits: 1, of: (row) => row.sum_room ?? "" },
    { head: "tests of data", number: true, of: (row) => row.data_tests },
    { head: "loops of data", number: true, of: (row) => unlessOpen(row.data_loops) },
    { head: "places of data", number: true, of: (row) => unlessOpen(row.data_places) },
    { head: "instructions, at most", number: true, of: (row) => row.instructions ?? "not known" },
  ], bounds);
}

function stackOf(stack) {
  if (stack.bytes === null) return `Stack of the kernels: ${stack.reason}`;
  const chain = stack.chain.map((frame) => `${frame.name} ${said(frame.bytes)}`).join(", ");
  const more = stack.outside.length ? `; with what these take: ${stack.outside.join(", ")}` : "";
  return `Stack of the kernels, at most ${said(stack.bytes)} bytes: ${chain}${more}`;
}

const tile = (value, name, more) => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name), more ? el("span", {}, more) : null);

function tilesOf(data) {
  const { report } = data, spent = total(layerRows(report, data), (row) => row.instructions);
  const flash = report.flash.weights + report.flash.tables;
  const locked = report.stages.filter((stage) => stage.arrows.length);
  return el("div", { class: "tiles" },
    tile(`${said(report.ram.arena + report.ram.instance)} B`, "RAM", `arena ${said(report.ram.arena)}, instance ${said(report.ram.instance)}`),
    tile(`${said(flash + total(report.code, (row) => row.bytes))} B`, "flash", `${said(flash)} of it exact, code ${said(total(report.code, (row) => row.bytes))} by estimate`),
    tile(brief(spent), "instructions", data.measured ? `counted on ${data.measured.board}` : "as estimated"),
    tile(brief(report.macs), "multiply-accumulates", spent && report.macs ? `${said(spent / report.macs, 2)} instructions each` : ""),
    tile(said(report.layers.length), "layers", `${plural(report.stages.length, "stage")}, ${plural(locked.length, "stage")} in lock step`));
}

/** The three questions that a reader begins with: does it fit, what does it cost, what would make it cheaper. */
function answersOf(data) {
  const { report } = data, rows = layerRows(report, data), spent = total(rows, (row) => row.instructions);
  const fits = data.chips.filter((chip) => chip.ram >= 0 && chip.flash >= 0), not = data.chips.filter((chip) => !fits.includes(chip));
  const lacks = (chip) => `${chip.chip} (${[["RAM", chip.ram], ["flash", chip.flash]].filter(([, left]) => left < 0).map(([what, left]) => `${size(-left)} of ${what} too little`).join(", ")})`;
  const fit = data.chips.length ? [`With the runtime and a stack it fits ${said(fits.length)} of the ${said(data.chips.length)} chips of crt fit that run this code`,
    fits.length && not.length ? `: ${fits.map((chip) => chip.chip).join(", ")}. Not ${not.map(lacks).join(", ")}.` : not.length ? `: not ${not.map(lacks).join(", ")}.` : "."].join("") :
    "crt fit knows no chip with this core.";
  const first = [...rows].sort((a, b) => b.instructions - a.instructions).filter((row) => row.instructions).slice(0, 3);
  const cost = `${said(spent)} instructions a run, ${data.measured ? "counted" : "by estimate"}. The most are in ${first.map((row) => `${row.node.short ?? row.short} (${share(row.instructions, spent)})`).join(", ")}.`;
  const use = report.cores, together = !use ? "" : use.sliced ? ` On ${said(use.cores)} cores ${use.share.toFixed(2)} of one core's from begin to end, by estimate.` : ` ${oneCore(use)}`;
  const floats = report.inputs.concat(report.outputs).every((one) => one.dtype === "float32") && !report.layers.some((row) => row.op === "quantize");
  const cheaper = (report.savings || []).slice(0, 3).map((one) => `${one.options.join(" ")}: ${said(one.arena)} instead of ${said(one.instead)} bytes of arena, ${Math.abs(one.instructions - 1) < 0.005 ? "as many" : `${said(one.instructions, 2)} times the`} instructions`);
  if (report.target === "generic") cheaper.unshift("--target of your chip's core: its instructions, most models take less than half");
  if (floats) cheaper.unshift("--quantise SAMPLES.npz: int8 instead of floats, a quarter of the weights");
  return el("section", { class: "answers", "aria-label": "In short" }, el("dl", {},
    el("dt", {}, "Does it fit?"), el("dd", {}, fit), el("dt", {}, "What does it cost?"), el("dd", {}, cost + together),
    el("dt", {}, "What would make it cheaper?"), el("dd", {}, cheaper.length ? el("ul", {}, cheaper.map((line) => el("li", {}, line))) : "Nothing that was tried saves a twentieth of the RAM.")));
}

const foot = (version) => el("footer", {}, el("p", {}, `Made by pybuild ${version}. The data of this page is JSON, schema ${data.schema}: document.getElementById("data").`),
  folded("Licences of what draws this page", el("pre", { tabindex: "0" }, document.getElementById("licences").textContent)));
