"""Quantising as --quantise asks for it, and what it cost as a table."""

from __future__ import annotations

import argparse

import pybuild
from pybuild.cli.options import chosen
from pybuild.cli.tables import short, table
from pybuild.errors import BuildError, Problem
from pybuild.options.option import of_words
from pybuild.options.table import QuantiseOptions
from pybuild.quantisation.report import Quantisation

# rows of a table of layers, worst first; --json has them all
SHOWN = 12


def quantised(args: argparse.Namespace, model: pybuild.Model) -> pybuild.Model:
    """The model, in int8 where --quantise says so.

    Errors  BuildError for options that mean nothing without it
    """
    if args.quantise is None:
        known = [one for one in of_words(QuantiseOptions) if one.word in args.given]
        if known:
            raise BuildError.of(
                Problem(one.where, "is for --quantise CALIB.npz") for one in known
            )
        return model
    asked = chosen(QuantiseOptions, args)
    return pybuild.quantise(model, **asked, rounding=args.rounding).model


def reference_of(args: argparse.Namespace, library: pybuild.Library) -> str | None:
    """--ref, where interpreters of the file know nothing of what was quantised."""
    ref: str | None = args.ref
    if library.model.quantisation is None or ref in (None, "numpy", "tflm"):
        return ref
    if ref == "auto":
        return "numpy"
    what = f"--ref {ref} reads the file, which is not quantised"
    raise BuildError("--quantise", what, "--ref numpy or auto")


def show_quantisation(report: Quantisation | None) -> None:
    if report is None:
        return
    columns = [("layer", "left"), ("operator", "left"), ("in", "left")]
    columns.append(("signal to noise", "right"))
    rows = [
        (short(row.name), row.op, row.kind, _decibels(row.snr))
        for row in report.layers[:SHOWN]
    ]
    table(f"Quantised by {report.method} over {report.samples} samples", columns, rows)
    left = len(report.layers) - len(rows)
    if left:
        print(f"and {left} less noisy layers")
    for row in report.floats:
        print(f"float  {short(row.name)} ({row.op}): {row.why}")
    done = ["weights fitted"] * report.fitted
    done += [f"{report.equalised} groups of tensors equalised"] * (report.equalised > 0)
    done += ["biases corrected"] * report.bias_corrected
    if done:
        print(f"also   {', '.join(done)}")
    print(f"error  {report.error:.2%} of the outputs, root mean square")
    if report.score:
        s = report.score
        print(f"right  {s.right_float} of {s.samples} in float, ", end="")
        print(f"{s.right_quantised} quantised")


def _decibels(value: float | None) -> str:
    return "none lost" if value is None else f"{value:.1f} dB"
