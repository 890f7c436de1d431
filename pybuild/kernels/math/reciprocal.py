"""The reciprocal of an int32 in fixed point as Loop IR: three steps of Newton's."""

from __future__ import annotations

from pybuild.ir.loop import INT32, Expr, Intrin, Var, const, i32, select
from pybuild.kernels.epilogues.requantise import MULHI_ROUND

_MOST = 2**31 - 1
_TOTAL = Var("total", INT32)


def _spare_bits() -> Intrin:
    """The shift that moves the top bit of total > 0 to bit 30, by binary search."""
    lets: list[tuple[Var, Expr]] = []
    value, shifts = _TOTAL, i32(0)
    for bits in (16, 8, 4, 2, 1):
        step = Var(f"step{bits}", INT32)
        small = value < (1 << (31 - bits))
        lets.append((step, select(small, const(bits), const(0))))
        shifts = shifts + step
        if bits > 1:
            moved = Var(f"total{bits}", INT32)
            lets.append((moved, value << step))
            value = moved
    doc = "How far total can go left until bit 30 is set."
    return Intrin("crt_spare_bits", (_TOTAL,), shifts, tuple(lets), doc=doc)


SPARE_BITS = _spare_bits()


def _newton() -> tuple[tuple[Var, Expr], ...]:
    """2^61 / h in Q2.29 by three steps; h in Q0.31, at least a half."""
    lets: list[tuple[Var, Expr]] = []
    half = Var("half", INT32)
    value = Var("t0", INT32)
    lets.append((value, MULHI_ROUND(half, const(-1010580540)) + 1515870810))
    for turn in (1, 2, 3):
        following = Var(f"t{turn}", INT32)
        rest = const(1 << 29) - MULHI_ROUND(half, value)
        lets.append((following, value + MULHI_ROUND(value, rest) * 4))
        value = following
    return tuple(lets)


_T3 = Var("t3", INT32)
RECIPROCAL = Intrin(
    "crt_reciprocal",
    (Var("half", INT32),),
    select(_T3 >= (1 << 30), const(_MOST), _T3 << const(1)),
    _newton(),
    doc="2^61 / half by three steps of Newton's; half in Q0.31, at least 1/2.",
)
