"use strict";
/* Memory over time: bytes across, steps along; who is there, and why the peak is it. */

/** Of a report's memory: the place of a time among steps, and who is alive when. */
function timeline(memory, region) {
  const count = memory.steps.length, edge = Math.max(0.6, count * 0.025);
  const stages = memory.stages;
  const blocks = memory.blocks.filter((block) => block.region === region);

  function stageAt(time) {
    let low = 0, high = stages.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (stages[middle].start <= time) low = middle; else high = middle - 1;
    }
    return stages[low];
  }
  /* a stage is as wide as it has steps, whatever its bands */
  function at(time) {
    if (time <= 0) return -edge;
    if (time >= memory.times + 1) return count + edge;
    if (time >= memory.times) return count;
    const s = stageAt(time);
    return s.first + ((time - s.start) / (s.stop - s.start)) * (s.end - s.first);
  }
  /* which step computes at a time, and what number its band has */
  function step(time) {
    if (time < 1) return { text: "before the run" };
    if (time >= memory.times) return { text: "after the run" };
    const s = stageAt(time);
    if (s.end - s.first === 1) {
      const bands = s.stop - s.start;
      const name = memory.steps[s.first];
      return { step: s.first, text: bands > 1 ? `${name}, band ${time - s.start + 1} of ${bands}` : name };
    }
    if (!s.order.length) return { step: s.first, text: `${memory.steps[s.first]} to ${memory.steps[s.end - 1]}, in lock step` };
    let left = time - s.start, band = {};
    for (const [number, turns] of s.order) {
      const mine = Math.min(turns, left + 1);
      band[number] = (band[number] || 0) + mine;
      if (left < turns) return { step: number, text: `${memory.steps[number]}, band ${band[number]}, in lock step` };
      left -= turns;
    }
    return { text: "" };
  }
  /* bytes alive from each time on */
  function live() {
    const changes = new Map();
    for (const block of blocks) for (const piece of block.pieces) for (const [from, to] of piece.times) {
      changes.set(from, (changes.get(from) || 0) + piece.end - piece.at);
      changes.set(to, (changes.get(to) || 0) - (piece.end - piece.at));
    }
    let now = 0;
    return [...changes.entries()].sort((a, b) => a[0] - b[0]).map(([time, change]) => [time, now += change]);
  }
  function who(time) {
    const found = [];
    for (const block of blocks) {
      const bytes = total(block.pieces.filter((p) => p.times.some(([a, b]) => a <= time && time < b)), (p) => p.end - p.at);
      if (bytes) found.push({ block, bytes });
    }
    return found.sort((a, b) => b.bytes - a.bytes);
  }
  return { count, edge, blocks, at, step, live: live(), who };
}

const KINDS = { tensor: "a tensor", ring: "a ring of rows", scratch: "scratch of a kernel",
  state: "kept from run to run", counters: "counts the bands of lock step", weights: "weights in RAM" };

/** The colour of a block: of the operator that makes it. */
function blockColour(block, ops) {
  if (block.kind === "scratch" || block.kind === "counters") return colour("hatch");
  const op = block.tensors.map((name) => ops.get(name)).find((found) => found !== undefined);
  return op === undefined ? colour("quiet") : hue(op);
}

const holds = (block) => (block.tensors.length ? block.tensors.join(", ") : block.name);

function spans(block, line) {
  const first = Math.min(...block.pieces.flatMap((p) => p.times.map((t) => t[0])));
  const last = Math.max(...block.pieces.flatMap((p) => p.times.map((t) => t[1] - 1)));
  return first === last ? line.step(first).text : `${line.step(first).text} to ${line.step(last).text}`;
}

/** One region of one plan; most: bytes at the top of the drawing. */
function memoryMap(title, memory, region, most, ops) {
  const facts_ = memory.regions[region], line = timeline(memory, region);
  const rects = [];
  line.blocks.forEach((block, number) => {
    let best = null;
    for (const piece of block.pieces) for (const [from, to] of piece.times) {
      const one = [line.at(from), line.at(to), block.at + piece.at, block.at + piece.end, number, false];
      rects.push(one);
      if (!best || (one[1] - one[0]) * (one[3] - one[2]) > (best[1] - best[0]) * (best[3] - best[2])) best = one;
    }
    if (best) best[5] = true;
  });
  const peak = line.live.reduce((a, b) => (b[1] > a[1] ? b : a), [1, 0]);
  const locked = memory.stages.filter((s) => s.end - s.first > 1);
  const option = () => {
    const wide = made.holder.clientWidth - 106, every = Math.max(1, Math.ceil((line.count + 2 * line.edge) / (wide / 30)));
    const named = memory.steps.map((_, i) => i).filter((i) => i % every === 0);
    return {
    grid: [{ left: 92, right: 14, top: 16, height: 280 }, { left: 92, right: 14, top: 322, height: 64 }],
    tooltip: { ...tip((it) => {
      const block = line.blocks[it.data?.[4]];
      return block && card(block.name, [["holds", holds(block)], ["is", KINDS[block.kind]], ["bytes", said(block.bytes)],
        ["at", `${said(block.at)} to ${said(block.at + block.bytes)}`], ["alive", spans(block, line)]]);
    }) },
    xAxis: [0, 1].map((grid) => axis({
      type: "value", gridIndex: grid, min: -line.edge, max: line.count + line.edge, splitLine: { show: false },
      axisTick: { show: false },
      axisLabel: grid ? { rotate: line.count > 8 ? 36 : 0, fontSize: 11, width: 118, overflow: "truncate",
        interval: 0, customValues: named.map((i) => i + 0.5), formatter: (x) => memory.steps[Math.floor(x)] ?? "" } : { show: false },
    })),
    yAxis: [
      axis({ type: "value", min: 0, max: most, interval: stride(most),
        axisLabel: { formatter: size, showMaxLabel: most % stride(most) === 0 || most % stride(most) > stride(most) / 2 } }),
      axis({ type: "value", gridIndex: 1, min: 0, max: most, interval: most, axisLabel: { formatter: size } }),
    ],
    series: [{
      id: "lock", type: "custom", silent: true, z: 0, data: locked.map((s) => [s.first, s.end]),
      renderItem: (params, api) => {
        const a = api.coord([api.value(0), most]), b = api.coord([api.value(1), 0]);
        return { type: "rect", shape: { x: a[0], y: a[1], width: b[0] - a[0], height: b[1] - a[1] },
          style: { fill: colour("grid"), opacity: 0.7 },
          textContent: { style: { text: "lock step", fill: colour("soft"), fontSize: 11 } },
          textConfig: { position: "insideTopLeft", distance: 4 } };
      },
    }, {
      id: "map", type: "custom", z: 2, data: rects, clip: true, encode: { x: [0, 1], y: [2, 3] },
      renderItem: (params, api) => {
        const a = api.coord([api.value(0), api.value(3)]), b = api.coord([api.value(1), api.value(2)]);
        const block = line.blocks[api.value(4)], fill = blockColour(block, ops);
        const wide = b[0] - a[0], tall = b[1] - a[1];
        const upright = tall > wide * 1.6 && wide < 60, long = upright ? tall : wide;
        const labelled = rects[params.dataIndex][5] && long > 34 && (upright ? wide : tall) > 11;
        return { type: "rect", shape: { x: a[0], y: a[1], width: Math.max(wide, 0.7), height: Math.max(tall, 0.7) },
          style: { fill, stroke: colour("card"), lineWidth: wide > 5 && tall > 4 ? 0.8 : 0 },
          emphasis: { style: { stroke: colour("ink"), lineWidth: 1.5 } },
          textContent: labelled ? { style: { text: block.tensors[0] || block.name, fill: inkOn(fill), fontSize: 11,
            width: long - 8, overflow: "truncate" } } : undefined,
          textConfig: { position: "inside", rotation: upright ? Math.PI / 2 : 0 } };
      },
    }, {
      id: "live", type: "line", step: "end", symbol: "none", xAxisIndex: 1, yAxisIndex: 1, silent: true,
      lineStyle: { color: colour("accent"), width: 1.5 }, areaStyle: { color: colour("accent"), opacity: 0.18 },
      data: line.live.map(([time, bytes]) => [line.at(time), bytes]),
      markLine: { symbol: "none", silent: true, lineStyle: { color: colour("warn"), type: "dashed" },
        label: { color: colour("warn"), position: "insideStartTop", formatter: `most alive ${said(facts_.most_alive)}` },
        data: [{ yAxis: facts_.most_alive }] },
    }],
    };
  };
  const made = chart(`Map of ${title}: ${said(facts_.bytes)} bytes over ${plural(line.count, "step")}; the slider below says who is there when.`,
    470, option, rects.length);
  const cursor = el("div", { class: "cursor" });
  const place = () => {
    if (!made.made) return;
    made.holder.append(cursor);
    const [a, b] = [line.at(now), line.at(now + 1)].map((x) => made.made.convertToPixel({ gridIndex: 0 }, [x, 0])[0]);
    Object.assign(cursor.style, { left: `${(a + b) / 2}px`, top: "16px", bottom: "84px" });
  };
  made.after.push(place);
  let now = peak[0];
  const box = el("div", { class: "who", "aria-live": "polite" });
  const slider = el("input", { type: "range", min: "0", max: String(memory.times), value: String(now),
    "aria-label": `Time in ${title}`, on: { input: () => show(Number(slider.value)) } });
  function show(time) {
    now = time;
    slider.value = String(time);
    const there = line.who(time), bytes = total(there, (one) => one.bytes), step = line.step(time);
    slider.setAttribute("aria-valuetext", `${step.text}: ${said(bytes)} bytes`);
    const why = time === peak[0] ? `The peak: most bytes are alive at ${step.text}` : `At ${step.text}`;
    const gap = facts_.bytes - bytes;
    box.replaceChildren(el("b", {}, `${why}: ${said(bytes)} of ${said(facts_.bytes)} bytes`),
      gap && time === peak[0] ? el("span", { class: "soft" }, `; ${said(gap)} lie between, for alignment and shape`) : "",
      el("ol", {}, there.map(({ block, bytes: own }) => el("li", {}, `${block.name}: ${said(own)}`,
        own < block.bytes ? ` of ${said(block.bytes)}` : "", block.kind === "tensor" ? "" : ` (${KINDS[block.kind]})`))));
    place();
  }
  show(now);
  made.holder.addEventListener("click", (event) => {
    const box_ = made.holder.getBoundingClientRect();
    const [x] = made.made.convertFromPixel({ gridIndex: 0 }, [event.clientX - box_.left, 0]);
    let best = 0;
    for (let time = 0; time <= memory.times; time++) if (line.at(time) <= x) best = time;
    show(best);
  });
  const peakButton = el("button", { type: "button", on: { click: () => show(peak[0]) } }, "Peak");
  return el("div", {}, el("h3", {}, `${title}: ${said(facts_.bytes)} bytes`), made.holder,
    el("div", { class: "slide" }, slider, peakButton), box);
}

function blockTable(memory) {
  const lines = memory.regions.map((_, region) => timeline(memory, region));
  return table("Every block, where it lies, and when it is alive", [
    { head: "block", of: (b) => b.name },
    { head: "region", of: (b) => memory.regions[b.region].name },
    { head: "at", of: (b) => b.at, number: true },
    { head: "bytes", of: (b) => b.bytes, number: true },
    { head: "kind", of: (b) => b.kind },
    { head: "holds", of: holds },
    { head: "alive", of: (b) => spans(b, lines[b.region]) },
  ], memory.blocks);
}
