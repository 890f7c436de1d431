"""The logarithm of fixed-point numbers, as gemmlowp and LiteRT compute it: in int32."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import Ints
from pybuild.ops.fixed_point.quant import shift_away
from pybuild.ops.fixed_point.reciprocal import mulhi, reciprocal

# Q0.31: log(2), sqrt(1/2) and its root, then what a fraction of polynomials has
LOG_2, ROOT, FOURTH = 1488522236, 1518500250, 1805811301
CUBE, SQUARE, PLAIN, SLOPE = 117049297, 127690142, 1057819769, 638450708
QUARTER, BITS = 1 << 23, 25  # of powers of two, in Q6.25
ONE = 1 << 19
_TOP = (1 << 31) - 1


def fixed_log(x: Any) -> Any:
    """log(x) in Q5.26 of x in Q12.19; of less than 1 as of 1.

    Source  LiteRT log_x_for_x_greater_than_or_equal_to_1
    """
    z: Ints = np.maximum(x, ONE).astype(np.int64)
    spare = _spare_bits(z)
    first = np.minimum(mulhi(z << spare, ROOT) << 1, _TOP)
    fewer = _spare_bits(mulhi(z, ROOT))
    r = np.minimum(first, np.minimum(z << fewer, _TOP))
    power = np.maximum(
        ((11 - spare) << BITS) + QUARTER, ((12 - fewer) << BITS) - QUARTER
    )
    q = 2 * (r - FOURTH)
    square = mulhi(q, q)
    above = mulhi(q, r) + mulhi(mulhi(q, square), CUBE)
    terms = q + PLAIN + mulhi(square, SQUARE)
    below = mulhi((r + FOURTH + 1) >> 1, terms) + mulhi(q, SLOPE)
    part = mulhi(shift_away(above, 6), reciprocal((below >> 1) + (1 << 30)))
    return (2 * (mulhi(power, LOG_2) + part)).astype(np.int32)


def _spare_bits(x: Ints) -> Ints:
    """The number of leading zeros after the sign, in 32 bits."""
    return np.asarray(31 - np.frexp(x.astype(np.float64))[1].astype(np.int64))
