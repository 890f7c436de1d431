"use strict";
/* What a build made of somebody's samples: which classes it said, and how far each layer
   is off the same layers in real numbers, or off the reference. */

const decibels = (row) => (row.error === null ? "" : row.snr === null ? "none lost" : said(row.snr, 2));
const percent = (part) => (part === null ? "" : `${said(100 * part, 2)} %`);

function samplesPanel(section, samples) {
  const { classes, layers } = samples;
  section.append(el("p", {}, samples.ok ? `All outputs are as ${samples.reference} gives them (${samples.tolerance}).`
    : `${said(samples.unequal)} values of outputs are not as ${samples.reference} gives them (${samples.tolerance}).`));
  for (const note of samples.notes) section.append(el("p", { class: "soft" }, note));
  if (classes) section.append(classTable(samples), ...confusions(classes));
  const known = layers.filter((row) => row.error !== null);
  if (known.length) section.append(noiseChart(known).holder);
  section.append(layerErrors(samples));
}

function classTable({ count, classes }) {
  const who = Object.keys(classes.accuracy || { reference: 0, ...classes.changed });
  return table("Which class was said: of the greatest value of the first output", [
    { head: "by", of: (name) => name },
    ...(classes.accuracy ? [{ head: "right", of: (name) => classes.right[name], number: true },
      { head: "of all", of: (name) => percent(classes.accuracy[name]), number: true }] : []),
    { head: "other than the reference", of: (name) => classes.changed?.[name] ?? 0, number: true },
    { head: "samples", of: () => count, number: true },
  ], who);
}

function confusions(classes) {
  if (!classes.confusion) return [];
  const cells = classes.confusion.build;
  return [folded("Which class was said for which", table("Rows: the class of the sample; columns: what the build said", [
    { head: "class", of: (i) => String(i) },
    ...cells.map((_, said) => ({ head: String(said), of: (i) => cells[i][said], number: true })),
  ], cells.map((_, i) => i)))];
}

function layerErrors({ layers, beside }) {
  return table(`Outputs of layers over all samples; error: beside ${beside}`, [
    { head: "layer", of: (row) => row.short }, { head: "operator", of: (row) => row.op }, { head: "type", of: (row) => row.dtype },
    { head: "error", of: (row) => percent(row.error), number: true, sort: (row) => row.error ?? -1 },
    { head: "signal to noise, dB", of: decibels, number: true, sort: (row) => row.snr ?? Infinity },
    { head: "cut off", of: (row) => percent(row.cut_off), number: true, sort: (row) => row.cut_off ?? -1 },
    { head: "unequal to the reference", of: (row) => percent(row.unequal), number: true, sort: (row) => row.unequal ?? -1 },
    { head: "furthest from it", of: (row) => (row.max_abs === null ? "" : exact(row.max_abs)), number: true, sort: (row) => row.max_abs ?? -1 },
    { head: "least", of: (row) => exact(row.low), number: true, sort: (row) => row.low },
    { head: "greatest", of: (row) => exact(row.high), number: true, sort: (row) => row.high },
  ], layers);
}

/** Four digits, however small. */
const exact = (n) => (n === null ? "" : String(Number(n.toPrecision(4))));
