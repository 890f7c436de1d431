"use strict";
/* The page of one build. */

addPanels(data, "");
start({
  top: [el("div", {}, el("h1", {}, data.report.name), el("p", { class: "soft" },
    `for ${data.report.target}, optimised for ${data.report.optimise}; equal to ${data.report.reference}`))],
  tiles: tilesOf(data),
  foot: foot(data.report.provenance.pybuild),
});
