"use strict";
/* Graphs: laid out by dagre piece by piece, read like text: from left to right, row
   under row. A piece ends where only one value is handed on, so pieces are small. */

const BOX = { width: 128, height: 42, gap: 26, row: 34 };
const LARGE = 240; // nodes of a piece that dagre is not asked for

/** edges: [from, to, label]; nodes in an order in which they run.
    -> {nodes: [{x, y}], edges: [{from, to, label, wraps}], width, height}; x, y: middles */
function placed(count, edges, aspect) {
  const ends = new Array(count).fill(0).map((_, i) => i); // furthest reader of each node
  for (const [a, b] of edges) ends[a] = Math.max(ends[a], b);
  const pieces = [];
  let first = 0, open = new Set();
  for (let i = 0; i < count; i++) {
    for (const a of open) if (ends[a] <= i) open.delete(a);
    if (ends[i] > i) open.add(i);
    if (open.size <= 1 || i === count - 1) { pieces.push([first, i + 1]); first = i + 1; }
  }
  const inside = new Map(); // edges by the piece of their reader, of both ends within
  const piece = new Array(count);
  pieces.forEach(([a, b], p) => { for (let i = a; i < b; i++) piece[i] = p; });
  for (const edge of edges) if (piece[edge[0]] === piece[edge[1]]) {
    if (!inside.has(piece[edge[0]])) inside.set(piece[edge[0]], []);
    inside.get(piece[edge[0]]).push(edge);
  }
  const boxes = pieces.map(([a, b], p) => layPiece(a, b, inside.get(p) || []));
  const whole = boxes.reduce((sum, box) => sum + box.width + BOX.gap, 0);
  const tall = boxes.reduce((sum, box) => sum + box.height * (box.width + BOX.gap), 0) / Math.max(whole, 1) + BOX.row;
  const room = Math.max(...boxes.map((box) => box.width), Math.sqrt(whole * tall * aspect));
  const spots = new Array(count), rowOf = new Array(count);
  let x = 0, y = 0, row = [], number = 0, width = 0;
  const flush = () => {
    const high = Math.max(...row.map(({ box }) => box.height));
    for (const { box, at } of row) for (const [i, [dx, dy]] of box.at) {
      spots[i] = [at + dx, y + dy + (high - box.height) / 2];
      rowOf[i] = number;
    }
    width = Math.max(width, x - BOX.gap);
    y += high + BOX.row; x = 0; row = []; number += 1;
  };
  for (const box of boxes) {
    if (x && x + box.width > room) flush();
    row.push({ box, at: x });
    x += box.width + BOX.gap;
  }
  if (row.length) flush();
  return { spots, edges: edges.map(([a, b, label]) => [a, b, label, rowOf[a] !== rowOf[b]]), width, height: y - BOX.row };
}

function layPiece(first, end, edges) {
  const at = new Map();
  if (end - first === 1) {
    at.set(first, [BOX.width / 2, BOX.height / 2]);
    return { at, width: BOX.width, height: BOX.height };
  }
  if (end - first > LARGE) { // by the longest way to each, as many under each other as there are
    const rank = new Map(), lanes = [];
    for (let i = first; i < end; i++) rank.set(i, 0);
    for (const [a, b] of [...edges].sort((p, q) => p[1] - q[1])) rank.set(b, Math.max(rank.get(b), rank.get(a) + 1));
    for (let i = first; i < end; i++) {
      const r = rank.get(i);
      lanes[r] = (lanes[r] || 0) + 1;
      at.set(i, [r * (BOX.width + BOX.gap) + BOX.width / 2, (lanes[r] - 1) * (BOX.height + 14) + BOX.height / 2]);
    }
    return { at, width: lanes.length * (BOX.width + BOX.gap) - BOX.gap, height: Math.max(...lanes) * (BOX.height + 14) - 14 };
  }
  const graph = new drawing.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: BOX.gap, marginx: 0, marginy: 0 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (let i = first; i < end; i++) graph.setNode(String(i), { width: BOX.width, height: BOX.height });
  for (const [a, b] of edges) graph.setEdge(String(a), String(b));
  drawing.layout(graph);
  for (let i = first; i < end; i++) { const n = graph.node(String(i)); at.set(i, [n.x, n.y]); }
  return { at, width: graph.graph().width, height: graph.graph().height };
}

/** A drawing of nodes {title, under} that can be zoomed; fill: number -> colour. */
function network(label, height, nodes, edges, aspect, fill, pick) {
  const laid = placed(nodes.length, edges, aspect);
  let chosen = -1;
  const visible = (api, x, y) => {
    const [a, b] = [api.coord([x - BOX.width, y - BOX.height]), api.coord([x + BOX.width, y + BOX.height])];
    return b[0] > 0 && a[0] < api.getWidth() && b[1] > 0 && a[1] < api.getHeight();
  };
  const option = () => {
    const wide = made.holder.clientWidth || 1150, pad = 14;
    const scale = Math.max(laid.width / (wide - 2 * pad), laid.height / (height - 2 * pad), 0.72);
    const [w, h] = [wide * scale, height * scale];
    const left = (laid.width - w) / 2, top = (laid.height - h) / 2;
    const zoom = { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, moveOnMouseMove: true, filterMode: "none", minSpan: Math.min(100, (100 * 520) / w) };
    const hidden = (more) => ({ type: "value", show: false, ...more });
    return {
      grid: { left: 0, right: 0, top: 0, bottom: 0 },
      xAxis: hidden({ min: left, max: left + w }), yAxis: hidden({ min: top, max: top + h, inverse: true }),
      dataZoom: [{ ...zoom, id: "x", xAxisIndex: 0 }, { ...zoom, id: "y", yAxisIndex: 0 }],
      series: [{
        id: "edges", type: "custom", silent: true, data: laid.edges.map((_, i) => i), clip: true,
        renderItem: (params, api) => {
          const [a, b, text, wraps] = laid.edges[params.dataIndex];
          const [[x1, y1], [x2, y2]] = [laid.spots[a], laid.spots[b]];
          if (!visible(api, x1, y1) && !visible(api, x2, y2)) return null;
          const p = api.coord([x1 + BOX.width / 2, y1]), q = api.coord([x2 - BOX.width / 2, y2]);
          if (wraps) { // to the next row: out, along between the rows, and in
            const out = api.size([BOX.gap / 2, 0])[0], middle = api.coord([0, y2 - BOX.height / 2 - BOX.row / 2])[1];
            return { type: "polyline", shape: { points: [p, [p[0] + out, p[1]], [p[0] + out, middle], [q[0] - out, middle], [q[0] - out, q[1]], q], smooth: 0 },
              style: { stroke: colour("quiet"), fill: "none", lineWidth: 1.2, opacity: 0.7, lineJoin: "round" } };
          }
          if (x2 - x1 > 1.5 * (BOX.width + BOX.gap) && Math.abs(y2 - y1) < BOX.height) { // over those between
            const out = api.size([BOX.gap / 2, 0])[0], over = api.coord([0, y1 - BOX.height / 2 - BOX.row / 4])[1];
            return { type: "polyline", shape: { points: [p, [p[0] + out, p[1]], [p[0] + out, over], [q[0] - out, over], [q[0] - out, q[1]], q] },
              style: { stroke: colour("quiet"), fill: "none", lineWidth: 1.4, opacity: 0.85, lineJoin: "round" } };
          }
          const bend = Math.max((q[0] - p[0]) / 2, api.size([8, 0])[0]);
          const font = Math.min(11, api.size([0, 11])[1]);
          return { type: "group", children: [
            { type: "bezierCurve", shape: { x1: p[0], y1: p[1], x2: q[0], y2: q[1], cpx1: p[0] + bend, cpy1: p[1], cpx2: q[0] - bend, cpy2: q[1] },
              style: { stroke: colour("quiet"), fill: "none", lineWidth: 1.4, opacity: 0.85 } },
            ...(text && font > 6 ? [{ type: "text", style: { text, x: (p[0] + q[0]) / 2, y: (p[1] + q[1]) / 2 - 3, align: "center", verticalAlign: "bottom", fontSize: font, fill: colour("soft") } }] : []),
          ] };
        },
      }, {
        id: "nodes", type: "custom", data: nodes.map((_, i) => i), clip: true, cursor: "pointer",
        renderItem: (params, api) => {
          const i = params.dataIndex, [x, y] = laid.spots[i];
          if (!visible(api, x, y)) return null;
          const a = api.coord([x - BOX.width / 2, y - BOX.height / 2]), [width, tall] = api.size([BOX.width, BOX.height]);
          const paint = fill(i), ink = inkOn(paint), font = Math.min(13, tall * 0.31);
          const lines = font > 5.5 ? [["title", -0.21, 600], ["under", 0.23, 400]].map(([key, shift, weight]) => ({
            type: "text", silent: true, style: { text: nodes[i][key], x: a[0] + width / 2, y: a[1] + tall * (0.5 + shift), align: "center",
              verticalAlign: "middle", fontSize: key === "title" ? font : font * 0.86, fontWeight: weight, fill: ink, width: width - 8, overflow: "truncate" } })) : [];
          return { type: "group", children: [
            { type: "rect", shape: { x: a[0], y: a[1], width, height: tall, r: Math.min(7, tall / 5) },
              style: { fill: paint, stroke: i === chosen ? colour("ink") : colour("line"), lineWidth: i === chosen ? 3 : 1 } }, ...lines] };
        },
      }],
    };
  };
  const made = chart(label, height, option, nodes.length * 2 + edges.length);
  const zoomed = () => made.made.getOption().dataZoom.map((zoom) => [zoom.start, zoom.end]);
  const zoom = (ranges) => made.made.dispatchAction({ type: "dataZoom", batch: ranges.map(([start, end], i) => ({ dataZoomIndex: i, start, end })) });
  made.zoom = (factor) => zoom(zoomed().map(([a, b]) => {
    const half = Math.min(((b - a) * factor) / 2, 50), middle = Math.min(Math.max((a + b) / 2, half), 100 - half);
    return [middle - half, middle + half];
  }));
  made.fit = () => zoom([[0, 100], [0, 100]]);
  made.show = (i) => {
    const { xAxis, yAxis } = made.made.getOption(), span = Math.min(100, ...zoomed().map(([a, b]) => b - a));
    zoom([xAxis, yAxis].map(([one], k) => {
      const low = one.min, at = (100 * (laid.spots[i][k] - low)) / (one.max - low);
      const from = Math.min(Math.max(at - span / 2, 0), 100 - span);
      return [from, from + span];
    }));
  };
  made.choose = (i, move) => {
    chosen = i;
    made.made.setOption({ series: [{ id: "nodes", data: nodes.map((_, k) => k) }] });
    if (move && made.holder.clientWidth && zoomed().some(([a, b]) => b - a < 99)) made.show(i);
    pick(i);
  };
  made.after.push(() => {
    made.made.off("click");
    made.made.on("click", { seriesId: "nodes" }, (it) => made.choose(it.dataIndex));
  });
  return made;
}

const COLOURS = {
  operator: "operator", instructions: "instructions", macs: "MACs", weights: "bytes of weights", out: "bytes of output", error: "error",
};

function graphPanel(section, report, rows, hues, passes) {
  const makers = new Map(), edges = [];
  rows.forEach((row) => row.node.outputs.forEach((name) => makers.set(name, row.number)));
  for (const row of rows) for (const name of row.node.inputs) {
    const maker = makers.get(name);
    if (maker !== undefined && maker < row.number) edges.push([maker, row.number, ""]);
  }
  const value = {
    instructions: (row) => row.instructions, macs: (row) => row.macs, weights: (row) => row.node.weights, out: (row) => row.out_bytes,
    error: (row) => (row.noise && row.noise.snr !== null ? Math.max(0, 60 - row.noise.snr) : 0),
  };
  let by = "operator", most = 1;
  const fill = (i) => {
    const row = rows[i];
    if (by !== "operator") return heat(value[by](row) / most);
    return row.node.device ? colour("hatch") : hue(hues.get(row.op));
  };
  const tall = Math.min(620, 200 + 12 * rows.length);
  const nodes = rows.map((row) => ({ title: row.short, under: row.op }));
  const detail = el("div", { class: "facts", "aria-live": "polite" }, el("p", { class: "soft" },
    "Choose a layer: click, search, or use the left and right arrow keys on the drawing."));
  const net = network(`Graph of ${plural(rows.length, "layer")}; choose layers with the search field or the arrow keys.`,
    tall, nodes, edges, Math.min(section.clientWidth || 850, 850) / tall, fill, (i) => { at = i; detail.replaceChildren(...nodeFacts(report, rows[i])); });
  let at = -1;
  const holder = el("div", { tabindex: "0", role: "group", "aria-label": "Graph; left and right arrow keys go from layer to layer, plus and minus zoom",
    on: { keydown: (event) => {
      const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      if (event.key in moves) net.choose(Math.min(Math.max(at + moves[event.key], 0), rows.length - 1), true);
      else if (event.key === "+") net.zoom(0.7);
      else if (event.key === "-") net.zoom(1 / 0.7);
      else return;
      event.preventDefault();
    } } }, net.holder);
  const results = el("div", { class: "results" });
  const search = el("input", { type: "search", placeholder: "layer, operator, kernel", "aria-label": "Search layers; Enter goes to the first", on: { keydown: (event) => {
    if (event.key === "Enter") results.querySelector("button")?.click();
  }, input: () => {
    const words = search.value.toLowerCase();
    const found = words ? rows.filter((row) => [row.short, row.name, row.op, row.kernel?.kernel || ""].some((text) => text.toLowerCase().includes(words))) : [];
    results.replaceChildren(...found.slice(0, 60).map((row) => el("button", { type: "button", on: { click: () => net.choose(row.number, true) } }, row.short)),
      words && !found.length ? el("span", { class: "soft" }, "no layer") : "");
  } } });
  const key = el("div");
  const paint = () => {
    const of = value[by];
    most = of ? rows.reduce((high, row) => Math.max(high, of(row)), 1) : 1;
    key.replaceChildren(by === "operator" ? legend(() => [...hues.entries()].slice(0, 10).map(([op, number]) => [op, hue(number)]))
      : legend(() => [["0", heat(0)], [by === "error" ? "most noise" : said(most), heat(1)]]));
    if (net.made) net.choose(at < 0 ? -2 : at);
  };
  const error = rows.some((row) => row.noise);
  const select = el("select", { "aria-label": "Colour by", on: { change: () => { by = select.value; paint(); } } },
    Object.entries(COLOURS).filter(([name]) => name !== "error" || error).map(([name, text]) => el("option", { value: name }, `colour by ${text}`)));
  const button = (text, title, call) => el("button", { type: "button", "aria-label": title, title, on: { click: call } }, text);
  const pick = net.choose;
  net.choose = (i, move) => (i === -2 ? net.draw() : pick(i, move));
  paint();
  document.addEventListener("theme", paint);
  section.append(el("div", { class: "bar" }, search, select, button("+", "Zoom in", () => net.zoom(0.7)), button("−", "Zoom out", () => net.zoom(1 / 0.7)),
    button("Fit", "Show all", () => net.fit()), el("span", { class: "soft" }, "Ctrl and wheel zooms, dragging moves")), results, key,
  el("div", { class: "beside" }, holder, detail), gonePart(passes), folded("As a table", nodeTable(rows)));
}

function nodeFacts(report, row) {
  const shape = (name) => {
    const t = row.tensors.get(name);
    if (!t) return name;
    const real = t.scale === null ? "" : `, real = ${Number(t.scale.toPrecision(6))} × (q − ${t.zero_point})`;
    return `${t.short}: ${t.dtype}[${t.shape.join(",")}]${real}`;
  };
  const model = report.command.split(" ")[2] || "MODEL";
  return [el("h3", {}, row.short), facts([
    ["operator", row.op], ["name in the file", row.name === row.short ? null : row.name],
    ["reads", el("div", {}, row.node.inputs.map((name) => el("div", {}, shape(name))))],
    ["makes", el("div", {}, row.node.outputs.map((name) => el("div", {}, shape(name))))],
    ["device", row.node.device ? said(row.node.device) : null], ["MACs", said(row.macs)], ["instructions", said(row.instructions)],
    ["cycles", row.cycles === null ? null : said(row.cycles)], ["weights", `${said(row.node.weights)} bytes`],
    ["kernel", row.kernel ? el("code", {}, row.kernel.kernel) : null], ["why", row.kernel?.reason],
    ["alternatives", row.kernel ? alternatives(row.kernel) : null],
    ["signal to noise", row.noise ? (row.noise.snr === null ? "none lost" : `${said(row.noise.snr, 1)} dB`) : null],
    ["look closer", el("code", {}, `crt inspect ${model} --stage kernels ${row.short}`)],
  ])];
}

function nodeTable(rows) {
  const list = (row, names) => names.map((name) => {
    const t = row.tensors.get(name);
    return t ? `${t.short} ${t.dtype}[${t.shape.join(",")}]` : name;
  }).join("; ");
  return table("Layers in the order in which they run", [
    { head: "layer", of: (row) => row.short }, { head: "operator", of: (row) => row.op }, { head: "reads", of: (row) => list(row, row.node.inputs) },
    { head: "makes", of: (row) => list(row, row.node.outputs) }, { head: "MACs", of: (row) => row.macs, number: true },
    { head: "weights", of: (row) => row.node.weights, number: true }, { head: "out bytes", of: (row) => row.out_bytes, number: true },
    { head: "device", of: (row) => row.node.device, number: true },
  ], rows);
}

/** What passes took out or put in. */
function gonePart(every) {
  const passes = (every || []).filter((one) => one.gone.length || one.made.length);
  if (!passes.length) return el("div");
  const names = (nodes) => nodes.map((node) => `${node.name} (${node.op})`).join(", ");
  return folded(`Folded, removed or put in by passes: ${plural(total(passes, (one) => one.gone.length), "node")} gone, ${said(total(passes, (one) => one.made.length))} made`,
    table("Passes that changed the graph, in their order", [
      { head: "pass", of: (one) => one.pass }, { head: "nodes after it", of: (one) => one.nodes, number: true },
      { head: "gone", of: (one) => names(one.gone) }, { head: "made", of: (one) => names(one.made) },
    ], passes));
}

/** A stage in lock step: steps, and the rows between them. */
function stagePicture(report, stage, first) {
  const steps = report.memory.steps;
  const outside = [...new Set(stage.arrows.filter((arrow) => typeof arrow.maker === "string").map((arrow) => arrow.maker))];
  const tensors = new Map(report.graph.tensors.map((tensor) => [tensor.name, tensor.short]));
  const nodes = [...outside.map((name) => ({ title: tensors.get(name) || name, under: "there before" })),
    ...Array.from({ length: stage.steps }, (_, i) => ({ title: steps[first + i] ?? "", under: `step ${first + i}` }))];
  const place = (end) => (typeof end === "string" ? outside.indexOf(end) : outside.length + end - first);
  const edges = stage.arrows.map((arrow) => [place(arrow.maker), place(arrow.reader), arrow.rows ? String(arrow.rows) : ""]);
  const net = network("Steps in lock step and the rows between them, as in the text below.", nodes.length < 9 ? 96 : Math.min(320, 90 + 10 * nodes.length), nodes, edges, nodes.length < 9 ? 1e6 : 1150 / 320,
    (i) => (i < outside.length ? colour("hatch") : hue(0)), () => {});
  return [el("p", {}, `Steps ${first} to ${first + stage.steps - 1} advance together; a number on a line is the rows that the ring between two steps holds.`),
    net.holder, el("pre", { tabindex: "0" }, stage.drawing.join("\n"))];
}
