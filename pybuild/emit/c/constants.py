"""Prints constant arrays as C99: NAME_weights.c, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pybuild.dtype import HALVES, Array, DType
from pybuild.emit.content import Text
from pybuild.emit.kernels.c import block_comment, expression, fold
from pybuild.emit.tables.tables import Constant, Tables
from pybuild.ir.loop import const

_PER_LINE = {1: 12, 2: 8, 4: 6, 8: 3}
# elements of a constant that are printed at once: whole lines of each type
_PIECE = 24 << 10


def weights_file(tables: Tables, banner: str) -> Text:
    """NAME_weights.c: every constant array, in the order of its symbol."""
    return constants_file(tables.constants, banner)


def constants_file(constants: Sequence[Constant], banner: str) -> Text:
    """Constant arrays, whoever's they are."""
    return Text(lambda: _constants(constants, banner))


def _constants(constants: Sequence[Constant], banner: str) -> Iterator[str]:
    head = [banner, '#include "crt/abi.h"', *limits(c.array for c in constants)]
    yield "\n".join(head).rstrip() + "\n"
    if not constants:
        yield "\ntypedef int no_weights; /* C99 wants a declaration */\n"
    else:
        yield "\n/* MISRA 8.4, in this file: who uses an array declares it */\n"
    for constant in constants:
        opening = f"{declaration(constant)} CRT_SECTION_WEIGHTS = {{"
        lines = ["", *block_comment(constant.comment), *fold(opening), ""]
        yield "\n".join(lines)
        for start in range(0, constant.array.size, _PIECE):
            piece = constant.array.reshape(-1)[start : start + _PIECE]
            yield "\n".join([*number_lines(piece), ""])
        yield "};\n"


def declaration(constant: Constant) -> str:
    """The declaration of the array, without its elements."""
    kind = DType.of(constant.array).c
    return f"const {kind} {constant.symbol}[{constant.array.size}]"


def number_lines(array: Array) -> list[str]:
    """The elements of an array as lines of an initialiser."""
    if DType.of(array) in HALVES:
        array = array.view(np.uint16)
    flat = array.reshape(-1)
    step = _PER_LINE[array.itemsize]
    texts = _numbers(flat)
    return [
        "    " + ", ".join(texts[i : i + step]) + ","
        for i in range(0, len(texts), step)
    ]


def limits(arrays: Iterable[Array]) -> list[str]:
    """The macros that initialisers with infinities and NaNs need."""
    if all(a.dtype.kind != "f" or np.isfinite(a).all() for a in arrays):
        return []
    return ["#include <math.h>", ""]


def _numbers(flat: Array) -> list[str]:
    """The numbers as text, all at once, as expression() prints them."""
    if flat.dtype.kind == "i" and flat.itemsize < 4:
        return [*map(str, flat.tolist())]
    if flat.dtype.kind != "f" or not np.isfinite(flat).all():
        return [_number(v, flat.dtype) for v in flat.tolist()]
    form, end = ("%.9g", "f") if flat.itemsize == 4 else ("%.17g", "")
    texts = [form % value for value in flat.tolist()]
    return [(t if "." in t or "e" in t else t + ".0") + end for t in texts]


def _number(value: int | float, dtype: np.dtype[np.generic]) -> str:
    if dtype.kind == "f":
        return _real(value, DType(dtype.name))
    if dtype.kind == "u" and dtype.itemsize >= 4:
        return f"{value}u"
    least = {-(2**31): "INT32_MIN", -(2**63): "INT64_MIN"}
    return least.get(int(value), str(int(value)))


def _real(value: float, dtype: DType) -> str:
    """C99 has names only for those that are finite."""
    if math.isfinite(value):
        return expression(const(value, dtype))
    short = dtype is DType.FLOAT32
    if math.isnan(value):
        return "NAN" if short else "(double)NAN"
    sign = "-" if value < 0 else ""
    return f"{sign}HUGE_VALF" if short else f"{sign}HUGE_VAL"
