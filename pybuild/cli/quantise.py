"""The options of quantising, and what it cost as a table."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import pybuild
from pybuild.cli.tables import short, table
from pybuild.errors import BuildError, Problem
from pybuild.quantisation import BOUNDARIES, METHODS, PERCENTILE
from pybuild.quantisation.report import Quantisation

# rows of a table of layers, worst first; --json has them all
SHOWN = 12
_ALONE = ("quantise_test", "keep_float", "int16", "max_loss", "no_equalise",
          "no_fit_weights", "no_bias_correction", "calibrate", "percentile",
          "boundary")  # fmt: skip


def share(text: str) -> float:
    """0.5% or 0.005."""
    number = text.strip().removesuffix("%")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a share like 0.5%")
    return value / 100 if text.strip().endswith("%") else value


def quantise_options(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument_group("quantise").add_argument
    text = "make a float model int8 with these samples: arrays by input name, and"
    text += " 'labels' if known"
    add("--quantise", metavar="CALIB.npz", help=text)
    text = "measure accuracy and noise with these samples, not the calibration's"
    add("--quantise-test", metavar="TEST.npz", help=text)
    text = "the range that int8 covers: all values seen (minmax, the default), most of"
    text += " them (percentile), or most of their information (entropy)"
    add("--calibrate", choices=METHODS, help=text)
    text = f"how many per cent --calibrate percentile covers; default {PERCENTILE}"
    add("--percentile", type=float, metavar="P", help=text)
    text = "a layer, or its output, that stays float32"
    add("--keep-float", action="append", default=[], metavar="LAYER", help=text)
    text = "a layer, or its output, that reads and makes int16"
    add("--int16", action="append", default=[], metavar="LAYER", help=text)
    text = "as few layers in int16 or float as it takes to lose no more, like 0.5%%"
    add("--max-loss", type=share, metavar="SHARE", help=text)
    text = "type of the model's inputs and outputs; default float"
    add("--boundary", choices=BOUNDARIES, help=text)
    add("--no-bias-correction", action="store_true", help="leave biases as they are")
    text = "round each weight to its nearest step"
    add("--no-fit-weights", action="store_true", help=text)
    add(
        "--no-equalise",
        action="store_true",
        help="do not scale channels between layers",
    )


def quantised(args: argparse.Namespace, model: pybuild.Model) -> pybuild.Model:
    """The model, in int8 where --quantise says so.

    Errors  BuildError for options that mean nothing without it
    """
    if args.quantise is None:
        given = [name for name in _ALONE if getattr(args, name)]
        if given:
            raise BuildError.of(
                Problem(f"--{name.replace('_', '-')}", "is for --quantise CALIB.npz")
                for name in given
            )
        return model
    made = pybuild.quantise(
        model,
        Path(args.quantise),
        test=args.quantise_test,
        calibrate=args.calibrate or "minmax",
        percentile=PERCENTILE if args.percentile is None else args.percentile,
        keep_float=args.keep_float,
        int16=args.int16,
        bias_correction=not args.no_bias_correction,
        equalise=not args.no_equalise,
        fit_weights=not args.no_fit_weights,
        max_loss=args.max_loss,
        boundary=args.boundary or "float",
        rounding=args.rounding,
    )
    return made.model


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
