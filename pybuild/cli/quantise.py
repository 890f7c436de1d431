"""Quantising as --quantise asks for it, and what it cost as a table."""

from __future__ import annotations

import argparse
from pathlib import Path

import pybuild
from pybuild.cli.options import chosen
from pybuild.cli.output.progress import working
from pybuild.errors import BuildError, Problem
from pybuild.options.option import of_words
from pybuild.options.table import QuantiseOptions


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
    with working(f"quantising {Path(model.path).name}") as progress:
        made = pybuild.quantise(
            model, **asked, rounding=args.rounding, progress=progress
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
