"use strict";
/* Equal cores over time: a lane for each, and where they wait for each other. */

/** Each step from where it begins to where all cores have met, in instructions; before the first one they come together. */
function sections(use) {
  let at = use.together - total(use.shared, (step) => Math.max(...step.cores) + step.meeting);
  return use.shared.map((step) => {
    const begin = at;
    at += Math.max(...step.cores) + step.meeting;
    return { ...step, begin, end: at };
  });
}

/** Instructions that a core waits in a step. */
const waits = (step, core) => step.end - step.begin - step.cores[core];

function coresPanel(section, use, hues, measured) {
  const steps = sections(use), lanes = Array.from({ length: use.cores }, (_, core) => core);
  section.append(el("p", {}, `${said(use.together)} instructions from begin to end, by estimate; one core alone takes ${said(use.alone)}: ${use.share.toFixed(2)} of that. ${said(use.sliced)} of ${plural(use.steps, "step")} in slices.`));
  if (measured?.alone) section.append(el("p", {}, `Counted on ${measured.board}: ${said(measured.wall)} from begin to end, ${measured.share.toFixed(2)} of one core's ${said(measured.alone)}.`));
  const ops = new Set(steps.map((step) => step.op));
  section.append(legend(() => [...hues.entries()].filter(([op]) => ops.has(op)).slice(0, 9).map(([op, number]) => [op, hue(number)]).concat([["waits, or meets the others", colour("hatch")]])),
    coresChart(steps, lanes, use, hues).holder, folded("As a table", coresTable(steps, lanes)));
}

function coresChart(steps, lanes, use, hues) {
  const bars = steps.flatMap((step, number) => lanes.flatMap((core) => {
    const done = step.begin + step.cores[core];
    return [[step.begin, done, core, number, 0], [done, step.end, core, number, 1]];
  })).concat(lanes.map((core) => [0, steps[0].begin, core, -1, 1])).filter(([from, to]) => to > from);
  const tall = 46, gap = 10;
  const option = () => ({
    grid: { left: 62, right: 18, top: 26, bottom: 46 },
    tooltip: tip((it) => {
      const step = steps[it.data?.[3]];
      return step && card(step.short, [["operator", step.op],
        ...lanes.flatMap((core) => [[`core ${core}`, `${said(step.cores[core])}, waits ${said(waits(step, core))}`]]),
        ["meetings", step.meetings ? said(step.meetings) : "none: the first core alone"]]);
    }),
    xAxis: axis({ type: "value", min: 0, max: use.alone, name: "instructions", nameLocation: "middle", nameGap: 28,
      axisLabel: { formatter: brief, hideOverlap: true, showMaxLabel: false } }),
    yAxis: axis({ type: "category", inverse: true, data: lanes.map((core) => `core ${core}`), splitLine: { show: false } }),
    series: [{
      id: "lanes", type: "custom", data: bars, encode: { x: [0, 1], y: 2 },
      renderItem: (params, api) => {
        const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), api.value(2)]);
        const step = steps[api.value(3)], idle = api.value(4) === 1, wide = b[0] - a[0]; // before all steps: none
        const fill = idle ? colour("hatch") : hue(hues.get(step.op) ?? 9);
        const high = idle ? tall / 3 : tall;
        return { type: "rect", shape: { x: a[0], y: a[1] - high / 2, width: Math.max(wide, 0.5), height: high },
          style: { fill, stroke: colour("card"), lineWidth: wide > 4 ? 0.8 : 0 },
          emphasis: { style: { stroke: colour("ink"), lineWidth: 1.5 } },
          textContent: !idle && wide > 34 ? { style: { text: step.short, fill: inkOn(fill), fontSize: 11, width: wide - 8, overflow: "truncate" } } : undefined,
          textConfig: { position: "inside" } };
      },
      markLine: { symbol: "none", silent: true, animation: false,
        lineStyle: { color: colour("soft"), type: "dotted", opacity: 0.8 },
        label: { show: false },
        data: [...steps.filter((step) => step.meetings).map((step) => ({ xAxis: step.end })),
          { xAxis: use.alone, lineStyle: { color: colour("warn"), type: "dashed", opacity: 1 },
            label: { show: true, formatter: "one core", color: colour("warn"), position: "start", align: "right", padding: [0, 0, 4, 0] } }] },
    }],
  });
  return chart(`${plural(use.cores, "core")} over time: ${said(use.together)} instructions from begin to end, where one core takes ${said(use.alone)}.`,
    72 + use.cores * (tall + gap), option, bars.length);
}

function coresTable(steps, lanes) {
  return table("Steps in their order; instructions of a run, by estimate", [
    { head: "step", of: (row) => row.short },
    { head: "operator", of: (row) => row.op },
    ...lanes.map((core) => ({ head: `core ${core}`, number: true, of: (row) => row.cores[core] })),
    ...lanes.map((core) => ({ head: `${core} waits`, number: true, of: (row) => waits(row, core) })),
    { head: "meetings", number: true, of: (row) => row.meetings },
  ], steps);
}
