"""ops/fixed_point/logarithm.py's function of one int32 as Loop IR."""

from __future__ import annotations

from pybuild.ir.loop import INT32, Expr, Intrin, Var, const, maximum, minimum, select
from pybuild.kernels.epilogues.requantise import MULHI_ROUND, SHIFT_ROUND
from pybuild.kernels.math.reciprocal import RECIPROCAL, SPARE_BITS
from pybuild.ops.fixed_point.logarithm import (
    BITS,
    CUBE,
    FOURTH,
    LOG_2,
    ONE,
    PLAIN,
    QUARTER,
    ROOT,
    SLOPE,
    SQUARE,
)  # fmt: skip

_TOP = (1 << 31) - 1


def _high(a: Expr, b: Expr | int) -> Expr:
    return MULHI_ROUND(a, const(b) if isinstance(b, int) else b)


def _raised(x: Expr, bits: Expr) -> Expr:
    """Shifted to the left, at most what int32 holds."""
    most = const(_TOP) >> bits
    return select(most < x, const(_TOP), minimum(x, most) << bits)


_DOC = "The natural logarithm of a fixed-point number, as TensorFlow Lite computes it."


def _fixed_log() -> Intrin:
    names = ("x", "z", "spare", "low", "fewer", "r", "q", "square", "above", "below")
    x, z, spare, low, fewer, r, q, square, above, below = (Var(n, INT32) for n in names)
    power = Var("power", INT32)
    first = _raised(_high(z << spare, ROOT), const(1))
    terms = q + PLAIN + _high(square, SQUARE)
    # half of a sum beyond int32
    middle = (r >> const(1)) + ((FOURTH + 1) // 2)
    lets: tuple[tuple[Var, Expr], ...] = (
        (z, maximum(x, const(ONE))),
        (spare, SPARE_BITS(z)),
        (low, _high(z, ROOT)),
        (fewer, SPARE_BITS(low)),
        (r, minimum(first, _raised(z, fewer))),
        (power, maximum(
            ((const(11) - spare) << const(BITS)) + QUARTER,
            (const(12) - fewer) * (1 << BITS) - QUARTER,
        )),
        (q, (r - FOURTH) * 2),
        (square, _high(q, q)),
        (above, _high(q, r) + _high(_high(q, square), CUBE)),
        (below, _high(middle, terms) + _high(q, SLOPE)),
    )  # fmt: skip
    share = RECIPROCAL((below >> const(1)) + (1 << 30))
    part = _high(SHIFT_ROUND(above, const(6)), share)
    result = (_high(power, LOG_2) + part) * 2
    return Intrin("crt_fixed_log", (x,), result, lets, doc=_DOC)


FIXED_LOG = _fixed_log()
