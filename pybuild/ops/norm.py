"""norm: each row less its mean, over its standard deviation; int8 and int16.

A row is the last axis. With `centred` false (RMSNorm) it is divided by the root of its
mean square, and no mean is taken off. LiteRT has no such operator: this is the meaning.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    WHOLE,
    Types,
    Values,
    invalid,
    must_have_shape,
    must_have_type,
    operand,
    optional,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import saturated
from pybuild.records import dataclass

Floats = npt.NDArray[np.float64]
# elements of a row: n * sum(q * q) fits 62 bits
MOST = (1 << 15) - 1
_EXTRA = 1 << 60
# 2.132773 - 1.218727 * a is within 8.6 % of 1 / sqrt(a), a from 1/4 to 1
ROOT_FIRST, ROOT_SLOPE = round(2.132773 * 2**29), round(1.218727 * 2**30)
ROOT_STEPS = 3
_MOST_BITS = 12


@dataclass(frozen=True)
class NormParameters:
    """Every integer of a norm. For one row of n elements, q = x - x_zero:

    total   = sum(q), 0 where it is not centred                            int32
    spread  = ((n * sum(q * q) - total * total) << more) + extra           int64, > 0
    half    = (bits of spread + 1) / 2: spread < 2^(2 * half)              1..31
    a       = spread * 2^(31 - 2 * half), cut off                          Q0.31, >= 1/4
    r       = 1 / sqrt(a) by `inverse_root`                                Q2.29
    left    = min(room + more / 2 - half, 30); of one below 0: r >>= -left, left = 0
    p       = mulhi_round((n * q - total) << left, r)       Q(room - 3): normalised
    y       = clamp((mulhi_round(p, factor) + offset) >> bits), of each element its own

    mulhi_round(a, b) = (int32)((a * b + 2^31) >> 32) in int64. |n * q - total| is at
    most sqrt(n * spread / 2^more), so it is at most 2^30 when it is shifted.
    more      bits of the spread below its units, even, so that a small `extra` counts
    factors   gamma in steps of the output, times 2^(bits + 35 - room)
    offsets   beta and the zero point likewise, times 2^bits, and a half of a step
    """

    count: int
    centred: bool
    x_zero: int
    more: int
    extra: int
    room: int
    factors: tuple[int, ...]
    offsets: tuple[int, ...]
    bits: int
    low: int
    high: int


def norm_parameters(node: Node, graph: Graph) -> NormParameters:
    """Every integer of a norm.

    Errors  BuildError for scales too far apart
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    count = x.shape[-1]
    gamma, beta = (_known(node, graph, i, count) for i in (1, 2))
    reach = 2 * (count.bit_length() + (8 if x.dtype is DType.INT8 else 16))
    extra = float(node.attrs["epsilon"]) * count**2 / x.scale**2
    if extra >= _EXTRA:
        what = f"epsilon is {node.attrs['epsilon']:g}, too much for a scale of "
        raise invalid(node, graph, f"{what}{x.scale:g}")
    more = max(0, min(16, 60 - reach, 60 - math.frexp(extra)[1])) & -2
    room = 30 - math.ceil(math.log2(count) / 2)
    factors, offsets = gamma / y.scale, beta / y.scale + y.zero_point
    # the most bits with which all of them are below 2^31 and 2^30
    spare = min(_spare(factors, room - 4), _spare(offsets, 29))
    bits = min(spare, _MOST_BITS)
    if bits < 1:
        what = f"the output's scale {y.scale:g} is too small for its factors"
        raise invalid(node, graph, what, "calibrate the output of this layer")
    whole = np.rint(factors * 2.0 ** (bits + 35 - room))
    moved = np.rint(offsets * 2.0**bits) + 2.0 ** (bits - 1)
    return NormParameters(
        count, bool(node.attrs["centred"]), x.zero_point,
        more, max(round(extra * 2.0**more), 1), room, tuple(map(int, whole)),
        tuple(map(int, moved)), bits, y.dtype.low, y.dtype.high,
    )  # fmt: skip


def _known(node: Node, graph: Graph, index: int, count: int) -> Floats:
    """gamma or beta in float64; without one 1 and 0."""
    if index >= len(node.inputs) or not node.inputs[index]:
        return np.full(count, 1.0 if index == 1 else 0.0)
    return graph.constants[node.inputs[index]].astype(np.float64)


def _spare(numbers: Floats, most: int) -> int:
    """Bits that all of these numbers can be shifted left to stay below 2^most."""
    top = float(np.abs(numbers).max(initial=0))
    return most if top == 0 else most - math.frexp(top)[1]


def inverse_root(a: Ints) -> Ints:
    """1 / sqrt(a) in Q2.29, within 2^-23 of it; a in Q0.31, at least a quarter.

    Each of three steps of Newton's method: r * (3 - a * r * r) / 2.
    """
    r = ROOT_FIRST - ((a * ROOT_SLOPE) >> 32)
    for _ in range(ROOT_STEPS):
        square = (((a * r) >> 31) * r) >> 29
        r = (r * ((3 << 29) - square)) >> 30
    return np.asarray(r)


def infer(node: Node, graph: Graph) -> Types:
    """attrs epsilon, centred. Shapes  x[.., n] int8 or int16  gamma, beta float32[n],
    constant  y as x
    """
    x = operand(node, graph, 0)
    if x.dtype not in WHOLE or not x.shape or not 0 < x.shape[-1] <= MOST:
        what = f"of {x.dtype.value}{list(x.shape)}"
        hint = f"int8 or int16, of at most {MOST} elements in a row"
        raise invalid(node, graph, what, hint)
    for index in (1, 2):
        given = optional(node, graph, index)
        if given is not None:
            _must_be_known(node, graph, given, x.shape[-1])
    if not 0 <= float(node.attrs["epsilon"]) < math.inf:
        raise invalid(node, graph, f"epsilon is {node.attrs['epsilon']}")
    return ((x.shape, x.dtype),)


def _must_be_known(node: Node, graph: Graph, given: Tensor, count: int) -> None:
    must_have_type(node, graph, given, DType.FLOAT32)
    must_have_shape(node, graph, given, (count,))
    if not graph.known(given.name):
        raise invalid(node, graph, f"'{given.name}' is not constant")


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; exact."""
    made = norm_parameters(node, graph)
    q = value(values, 0).astype(np.int64) - made.x_zero
    total = q.sum(-1, keepdims=True) * made.centred
    spread = made.count * (q * q).sum(-1, keepdims=True) - total * total
    spread = (spread << made.more) + made.extra
    half = (bit_length(spread) + 1) // 2
    up, down = np.maximum(31 - 2 * half, 0), np.maximum(2 * half - 31, 0)
    root = inverse_root((spread << up) >> down)
    left = np.minimum(made.room + made.more // 2 - half, 30)
    root, left = root >> np.maximum(-left, 0), np.maximum(left, 0)
    p = ((((made.count * q - total) << left) * root) + (1 << 31)) >> 32
    scaled = (p * np.asarray(made.factors) + (1 << 31)) >> 32
    y = (scaled + np.asarray(made.offsets)) >> made.bits
    return (saturated(y, graph.tensor(node.output).dtype, made.low, made.high),)


def bit_length(x: Ints) -> Ints:
    """The bit lengths of numbers from 1 to 2^62."""
    high = x >> 31
    part = np.where(high > 0, high, x)
    return np.frexp(part.astype(np.float64))[1] + np.where(high > 0, 31, 0)
