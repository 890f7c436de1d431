"""The epilogue of compact kernels: the start value of a sum is added last. A kernel
with signed epilogues serves layers without them, too. Knows no operator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import Expr, Var, load
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.affine_end import AffineFinish, corrected


def forms(epilogue: Affine) -> tuple[bool, ...]:
    """The forms of the epilogue that can serve a layer: signed or not."""
    return (False, True) if epilogue.below is None else (True,)


def kind_of(epilogue: Affine, signed: bool) -> str:
    """The key that distinguishes the code of two layers."""
    return "_".join(["signed"] * signed + ["clamped"] * epilogue.clamped)


def columns(epilogue: Affine, bias: Array, signed: bool) -> Ints:
    """Return the epilogue words of each channel: start, multiplier; or start, offset,
    below, multiplier."""
    made = epilogue.columns(bias)
    if not signed or epilogue.below is not None:
        return made
    none = np.zeros(len(made), np.int64)
    return np.stack([made[:, 0], none, none, made[:, 1]], axis=1)


def read_end(k: Builder, w: Var, signed: bool) -> list[Var]:
    """The words of `columns`."""
    return [k.let("end", load(w, i)) for i in range(4 if signed else 2)]


def ended(k: Builder, finish: AffineFinish, product: Expr, ends: Sequence[Var]) -> Expr:
    """Return the int8 value of 256 times a sum."""
    whole = k.let("whole", product + ends[0])
    if len(ends) > 2:
        whole = k.let("whole", corrected(whole, ends[1], ends[2]))
    return finish.narrow(whole, ends[-1])
