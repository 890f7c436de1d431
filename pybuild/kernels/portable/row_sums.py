"""Reductions over a whole image that take its rows as they come: each is added to
sums, which become the result after the last one.

The sums are a tensor of the two steps' own: one row, written over itself.
Knows no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Tensor
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Expr,
    Func,
    cast,
    const,
    load,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import (
    Candidate,
    Packed,
    RowAccess,
    by_rows,
    whole,
)
from pybuild.kernels.base.intrin import ADD_EVEN, ADD_ODD
from pybuild.kernels.base.vectors import MAX4, PLUS4, words_at
from pybuild.targets.target import Target

_FEWEST_ROWS = 2
_LANES = 4  # channels of a vector, or of a word
_MOST_PIXELS = 32767 // 128  # of a row whose sums are int16

Finish = Callable[[Builder, Expr], Callable[[Expr], Expr]]


def takes_rows(x: Tensor, y: Tensor) -> bool:
    """True if y [.., C] is made of all pixels of x [1,H,W,C]."""
    if len(x.shape) != 4 or x.shape[0] != 1 or x.shape[1] < _FEWEST_ROWS:
        return False
    return y.size == x.shape[3]


def accumulated(
    name: str,
    tensors: tuple[Tensor, Tensor],
    start: float,
    add: Callable[[Expr, Expr], Expr],
    finish: Finish,
    tables: Sequence[Packed],
    cost: int,
    target: Target,
) -> Candidate:
    """The two steps: rows added to the sums, and the sums' end.

    tensors  x, y
    start    what the sums begin with
    finish   binds the end of a sum in a kernel whose tables begin at a pointer
    """
    x, y = tensors
    _, height, _, channels = x.shape
    kind = FLOAT32 if x.dtype.is_float else INT32
    begin = np.full(channels, start, kind.numpy).tobytes()
    sums, size = f"{y.name} (sums)", 4 * channels
    ended = Candidate(
        *_end(name, (x, y), finish),
        outputs=(whole(y),),
        inputs=(RowAccess(sums, height, size, pad=1 - height, ring=1),),
        constants=tuple(tables),
    )
    if "mve" in target.features and _fills_vectors(x):
        func, args = _added_by_vectors(name, x)
    elif "dsp" in target.features and _kind(name) == "sums" and _fills_words(x):
        func, args = _added_in_pairs(name, x)
        cost = min(cost, _cost_in_pairs(x))
    else:
        func, args = _added(name, x, add)
    return Candidate(
        func,
        args,
        outputs=(RowAccess(sums, height, size, ring=1),),
        inputs=(
            by_rows(x),
            RowAccess(sums, height, size, pad=1, pad_row=begin, ring=1),
        ),
        bands=height,
        finish=ended,
        cost=cost,
    )


def _kind(name: str) -> str:
    return "maxima" if name.startswith("max") else "sums"


def _added(
    name: str, x: Tensor, add: Callable[[Expr, Expr], Expr]
) -> tuple[Func, tuple[int, ...]]:
    """sums[c] = sums[c] + one row's x[.., c]"""
    kind = FLOAT32 if x.dtype.is_float else INT32
    what = f"{_kind(name)} of channels so far, with one more row"
    order = "channel by channel, all pixels of the row"
    k = Builder(f"{name}_row", told(f"{what}: {x.dtype.value} to {kind.value}", order))
    to = k.row("sums", 0, kind, writable=True)
    row, before = k.row("x", 1, x.dtype), k.row("before", 2, kind)
    width, channels = k.arg("width", x.shape[2]), k.arg("channels", x.shape[3])
    with k.loop("c", channels) as c:
        total = k.let("total", load(before, c))
        with k.loop("ox", width) as ox:
            value = cast(load(row, ox * channels + c), kind)
            k.assign(total, add(total, value))
        k.store(to, c, total)
    return k.finish(in_place=True), tuple(k.values)


def _fills_vectors(x: Tensor) -> bool:
    return x.dtype in (DType.INT8, DType.INT16) and x.shape[3] % _LANES == 0


def _added_by_vectors(name: str, x: Tensor) -> tuple[Func, tuple[int, ...]]:
    """The same on vectors of four words."""
    more = MAX4 if _kind(name) == "maxima" else PLUS4
    what = f"{_kind(name)} of channels so far, with one more row"
    order = "four channels at a time, all pixels of the row"
    words = told(f"{what}: {x.dtype.value} to int32", order)
    k = Builder(f"{name}_row_mve", words)
    to = k.row("sums", 0, INT32, writable=True)
    row, before = k.row("x", 1, x.dtype), k.row("before", 2, INT32)
    width, channels = k.arg("width", x.shape[2]), k.arg("channels", x.shape[3])
    with k.loop("c", channels, 0, _LANES, rolled=True) as c:
        total = k.let("total", words_at(before, c))
        cell = k.let("cell", offset(row, c))
        with k.loop("ox", width, rolled=True):
            k.assign(total, more(total, words_at(cell)))
            k.assign(cell, offset(cell, channels))
        k.store(to, c, total)
    return k.finish(in_place=True), tuple(k.values)


def _fills_words(x: Tensor) -> bool:
    few = x.shape[2] <= _MOST_PIXELS
    return x.dtype is DType.INT8 and x.shape[3] % _LANES == 0 and few


def _added_in_pairs(name: str, x: Tensor) -> tuple[Func, tuple[int, ...]]:
    """The same of a word of four channels, a row's sums two in a word."""
    what = "sums of channels so far, with one more row"
    order = "four channels at a time, all pixels of the row, in sums of 16 bits"
    k = Builder(f"{name}_row_dsp", told(f"{what}: int8 to int32", order))
    to = k.row("sums", 0, INT32, writable=True)
    row, before = k.row("x", 1, x.dtype), k.row("before", 2, INT32)
    width, channels = k.arg("width", x.shape[2]), k.arg("channels", x.shape[3])
    with k.loop("c", channels, 0, _LANES, rolled=True) as c:
        pairs = [k.let("even", 0), k.let("odd", 0)]
        cell = k.let("cell", offset(row, c))
        with k.loop("ox", width, rolled=True):
            word = k.let("word", wide(cell, 0))
            for pair, add in zip(pairs, (ADD_EVEN, ADD_ODD), strict=True):
                k.assign(pair, add(pair, word))
            k.assign(cell, offset(cell, channels))
        low = [cast(cast(pair, DType.INT16), INT32) for pair in pairs]
        for i, more in enumerate((*low, *(pair >> 16 for pair in pairs))):
            k.store(to, c + i, load(before, c + i) + more)
    return k.finish(in_place=True), tuple(k.values)


def _cost_in_pairs(x: Tensor) -> int:
    """The estimated instructions of all rows and the epilogue."""
    _, height, width, channels = x.shape
    return channels * (height * (6 * width + 22) // _LANES + 14)


def _end(
    name: str, tensors: tuple[Tensor, Tensor], finish: Finish
) -> tuple[Func, tuple[int, ...]]:
    """y[c] = end(sums[c])"""
    x, y = tensors
    what = f"what the {_kind(name)} of all rows come to, {y.dtype.value}"
    k = Builder(f"{name}_end", told(what, "channel by channel"))
    to = k.row("y", 0, y.dtype, writable=True)
    sums = k.row("sums", 1, FLOAT32 if x.dtype.is_float else INT32)
    end = finish(k, const(2))
    with k.loop("c", k.arg("channels", x.shape[3])) as c:
        k.store(to, c, end(load(sums, c)))
    return k.finish(), tuple(k.values)
