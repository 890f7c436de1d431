"use strict";
/* The page of one build. */

addPanels(data, "");
start({
  top: [el("div", {}, el("h1", {}, data.report.name), el("p", { class: "soft" },
    `for ${data.report.target}, --optimise ${data.report.optimise}; results follow ${data.report.reference}`))],
  tiles: el("div", {}, tilesOf(data), answersOf(data)),
  foot: foot(data.report.provenance.pybuild),
});
