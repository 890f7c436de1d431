"""lstm: all steps of a sequence with an LSTM's usual four gates.

The state goes in and comes out: h is the last step of y. svdf: svdf.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    Numbers,
    Types,
    Values,
    invalid,
    must_have_shape,
    must_have_type,
    operand,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.curves16 import logistic16, tanh16
from pybuild.ops.fixed_point.quant import (
    accumulator_bound,
    quantize_multiplier,
    requantize,
    saturated,
    shift_away,
    wide_multiplier,
)
from pybuild.ops.int16.act16 import CurveParameters, curve
from pybuild.records import dataclass

X, H, C = 0, 1, 2
# the first of four: input, forget, cell, output
W, R, BIAS = 3, 7, 11
GATES = 4
# the gate that has tanh, and not logistic
CELL_GATE = 2
# bits after the point of what goes into a gate, and comes out
_IN, _OUT = 12, 15
Pair = tuple[int, int]


@dataclass(frozen=True)
class LstmParameters:
    """Every integer of a quantised lstm, s16 = held within int16:

    a = s16(requantize(w * (x - x_zero) + bias, *seen[g]))
    b = requantize(r * (h - h_zero), *known[g])
    gate = curve(s16(a + b)), in Q3.12 and Q0.15; of `tables`: b, too, in s16
    c = s16(forget * c + input * cell), each product scaled; then within +-clip
    h = held(requantize(output * tanh(c), *hidden) + zero, the type's bounds)

    tables   curves from a table (act16.py), products of gates by two roundings;
             else by gemmlowp's fixed point (curves16.py), and products by one
    wide     sums of 64 bits, rounded as convolutions of int16 round
    bits     of c before its point
    clip     0: none
    Source   LiteRT lstm_eval EvalInteger8x8_16; `tables`: TFLM LstmStep
    """

    tables: bool
    wide: bool
    x_zero: int
    h_zero: int
    seen: tuple[Pair, ...]
    known: tuple[Pair, ...]
    bits: int
    clip: int
    hidden: Pair
    zero: int
    low: int
    high: int

    @property
    def kept(self) -> Pair:
        """Scales forget * c."""
        return quantize_multiplier(2.0**-_OUT)

    @property
    def added(self) -> Pair:
        """Scales input * cell."""
        return quantize_multiplier(2.0 ** -(_OUT + self.bits))

    def tanh(self, bits: int) -> CurveParameters:
        """The table's steps of numbers with so many bits before the point."""
        left = max(bits - 3, 0), max(3 - bits, 0)
        return CurveParameters(3 << left[0], left[1], 8, 0xFFFF)


SIGMOID = CurveParameters(3, 0, 9, 0x7FFF << 1)


def sizes(node: Node, graph: Graph) -> tuple[int, int, int, int]:
    """steps, batch, width, units

    Errors  BuildError for shapes that do not fit each other
    """
    x, h = operand(node, graph, X), operand(node, graph, H)
    if len(x.shape) != 3 or len(h.shape) != 2:
        what = f"needs x[steps,batch,width] and h[batch,units], has {x.shape}, "
        raise invalid(node, graph, what + f"{h.shape}")
    steps, batch = x.shape[:2] if node.attrs["time_major"] else x.shape[1::-1]
    width, units = x.shape[2], h.shape[1]
    wanted: dict[int, tuple[int, ...]] = {H: (batch, units), C: (batch, units)}
    for gate in range(GATES):
        wanted |= {W + gate: (units, width), R + gate: (units, units)}
        wanted[BIAS + gate] = (units,)
    for index, shape in wanted.items():
        must_have_shape(node, graph, operand(node, graph, index), shape)
    return steps, batch, width, units


def infer_lstm(node: Node, graph: Graph) -> Types:
    """Shapes  x [T,B,I] or, not time_major, [B,T,I]  h, c [B,H]  four w [H,I],
    four r [H,H], four bias [H]; y as x, but H; the next c
    """
    _, batch, _, units = sizes(node, graph)
    x = operand(node, graph, X)
    _types(node, graph, x.dtype)
    shape = (*x.shape[:2], units)
    return ((shape, x.dtype), ((batch, units), operand(node, graph, C).dtype))


def _types(node: Node, graph: Graph, kind: DType) -> None:
    """Errors  BuildError for a mixture that no kernel has"""
    bias = {DType.INT8: DType.INT32, DType.INT16: DType.INT64}.get(kind, kind)
    whole = kind is not DType.FLOAT32
    name = activation(node)
    if name != "tanh" and (whole or name not in ACTIVATIONS):
        raise invalid(node, graph, f"the activation '{name}' on {kind.value}")
    wanted = {X: kind, H: kind, C: DType.INT16 if whole else kind}
    for gate in range(GATES):
        weights = DType.INT8 if whole else kind
        wanted |= {W + gate: weights, R + gate: weights, BIAS + gate: bias}
    if kind not in (DType.FLOAT32, DType.INT8, DType.INT16):
        what = f"'{operand(node, graph, X).name}' is {kind.value}"
        raise invalid(node, graph, what, "lstm is for float32, int8 and int16")
    for index, dtype in wanted.items():
        tensor = operand(node, graph, index)
        must_have_type(node, graph, tensor, dtype)
        if whole and index < BIAS:
            whole_quant(node, graph, tensor)
    if whole:
        lstm_parameters(node, graph)


def lstm_parameters(node: Node, graph: Graph) -> LstmParameters:
    """Errors  BuildError for scales that the reference kernels do not take"""
    x, h, c = (operand(node, graph, i) for i in (X, H, C))
    y = graph.tensor(node.output)
    bits = _before_point(node, graph, c)
    wide = x.dtype is DType.INT16
    tables = wide or node.attrs.get("reference") == "tflm"
    seen, known = (_scales(node, graph, f, t, wide) for f, t in ((W, x), (R, h)))
    scale, zero = h.scale, h.zero_point
    if not tables and "hidden_scale" in node.attrs:
        scale, zero = node.attrs["hidden_scale"], node.attrs["hidden_zero"]
    unit = 2.0**-_OUT  # of what a gate gives; LiteRT divides in float32
    ratio = float(np.float32(unit) / np.float32(scale) * np.float32(unit))
    if tables:
        ratio = unit * unit / float(np.float32(scale))
    hidden = quantize_multiplier(ratio)
    if hidden[1] > 0:
        raise invalid(node, graph, f"the scale of '{h.name}' is too small")
    limit = np.float32(node.attrs["cell_clip"]) / np.float32(c.scale)
    clip = int(np.clip(limit, -(1 << 15), (1 << 15) - 1))
    return LstmParameters(
        tables, wide, x.zero_point, h.zero_point, seen, known, bits, clip, hidden,
        zero, y.dtype.low, y.dtype.high,
    )  # fmt: skip


def _before_point(node: Node, graph: Graph, c: Tensor) -> int:
    """The number of integer bits of the cell state."""
    whole_quant(node, graph, c)
    fraction, exponent = math.frexp(c.scale)
    bits = exponent - 1 + _OUT
    if fraction != 0.5 or not 0 <= bits <= 6 or c.zero_point:
        what = f"the cell state '{c.name}' has scale {c.scale:g}"
        hint = "LiteRT has powers of 2 from 2^-15 to 2^-9, without a zero point"
        raise invalid(node, graph, what, hint)
    return bits


def _scales(
    node: Node, graph: Graph, first: int, source: Tensor, wide: bool
) -> tuple[Pair, ...]:
    """The scales of the sums of each gate, to Q3.12."""
    whole_quant(node, graph, source)
    made = []
    for gate in range(GATES):
        w = operand(node, graph, first + gate)
        if w.zero_point:
            what = f"weights '{w.name}' have a zero point"
            raise invalid(node, graph, what, "quantise weights symmetrically")
        scale = float(np.float32(w.scale) * np.float32(source.scale)) * 2.0**_IN
        made.append(wide_multiplier(scale) if wide else quantize_multiplier(scale))
        if scale >= 1 << 14:
            raise invalid(node, graph, f"the scale of '{w.name}' is too large")
        if not wide:
            bias = graph.constants.get(node.inputs[BIAS + gate]) if first == W else None
            must_fit(node, graph, first + gate, source, bias, made[-1])
    return tuple(made)


def must_fit(
    node: Node, graph: Graph, index: int, source: Tensor, bias: Array | None, end: Pair
) -> None:
    """Errors  BuildError where sums of the weights of input `index`, if they are known,
    could leave int32 when they are made ready to be scaled by `end`
    """
    weights = graph.constants.get(node.inputs[index])
    if weights is None:
        return
    least, most = accumulator_bound(weights, bias, source.zero_point, source.dtype)
    reach = int(np.maximum(-least, most).max(initial=0))
    # with the zero point in the bias, too
    reach += abs(source.zero_point) * int(np.abs(weights.astype(np.int64)).sum(1).max())
    if reach << max(end[1], 0) >= 1 << 31:
        what = f"the int32 sum of weights '{node.inputs[index]}' could overflow"
        raise invalid(node, graph, what, "fewer inputs per output, or smaller weights")


# of float32: all that hold a value between two; besides them there is tanh
ACTIVATIONS: dict[str, tuple[float, float]] = {
    "relu": (0, math.inf), "relu_n1_to_1": (-1, 1), "relu6": (0, 6),
}  # fmt: skip
Step = Callable[[Any, Any, Any], tuple[Any, Any]]


def lstm(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning."""
    x, h, c = (value(values, i) for i in (X, H, C))
    major = bool(node.attrs["time_major"])
    steps = x if major else x.transpose(1, 0, 2)
    made = []
    whole = operand(node, graph, X).dtype is not DType.FLOAT32
    step = _integer_step(node, graph, values) if whole else _float_step(node, values)
    for row in steps:
        h, c = step(row, h, c)
        made.append(h)
    y = np.stack(made)
    return np.ascontiguousarray(y if major else y.transpose(1, 0, 2)), c


def activation(node: Node) -> str:
    """The activation of the cell gate, and of the cell state at the output."""
    return str(node.attrs.get("activation", "tanh"))


def _float_step(node: Node, values: Values) -> Step:
    w, r, bias = (
        [value(values, first + g).astype(np.float64) for g in range(GATES)]
        for first in (W, R, BIAS)
    )
    clip = float(node.attrs["cell_clip"])
    name = activation(node)

    def active(value: Any) -> Any:
        return np.tanh(value) if name == "tanh" else np.clip(value, *ACTIVATIONS[name])

    def step(x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        sums = [x @ w[g].T + h @ r[g].T + bias[g] for g in range(GATES)]
        with np.errstate(over="ignore"):
            i, f, o = (1 / (1 + np.exp(-sums[g])) for g in (0, 1, 3))
        c = f * c + i * active(sums[CELL_GATE])
        c = np.clip(c, -clip, clip) if clip > 0 else c
        return (o * active(c)).astype(np.float32), c.astype(np.float32)

    return step


def _integer_step(node: Node, graph: Graph, values: Values) -> Step:
    made = lstm_parameters(node, graph)
    rule = "wide" if made.wide else "double"
    w, r, bias = (
        [value(values, first + g).astype(np.int64) for g in range(GATES)]
        for first in (W, R, BIAS)
    )

    def gate(g: int, x: Ints, h: Ints) -> Ints:
        seen = _int16(requantize(x @ w[g].T + bias[g], *made.seen[g], rule))
        known = requantize(h @ r[g].T, *made.known[g], rule)
        both = _int16(seen + (_int16(known) if made.tables else known))
        return tanh(made, both, 3) if g == CELL_GATE else logistic(made, both)

    def step(x: Numbers, h: Numbers, c: Numbers) -> tuple[Array, Array]:
        x, h, c = (a.astype(np.int64) for a in (x, h, c))
        i, f, g, o = (gate(n, x - made.x_zero, h - made.h_zero) for n in range(GATES))
        if made.tables:
            kept = _int16(requantize(f * c, *made.kept, "double"))
            added = _int16(requantize(i * g, *made.added, "double"))
        else:
            kept, added = shift_away(f * c, _OUT), shift_away(i * g, _OUT + made.bits)
        c = _int16(kept + added)
        c = np.clip(c, -made.clip, made.clip) if made.clip > 0 else c
        new = requantize(o * tanh(made, c, made.bits), *made.hidden, "double")
        kind = graph.tensor(node.output).dtype
        return saturated(new + made.zero, kind), c.astype(np.int16)

    return step


def _int16(x: Ints) -> Ints:
    return np.clip(x, DType.INT16.low, DType.INT16.high)


def logistic(made: LstmParameters, x: Ints) -> Ints:
    """The logistic function of Q3.12, in Q0.15."""
    return _int16(curve(x, SIGMOID)) if made.tables else logistic16(x)


def tanh(made: LstmParameters, x: Ints, bits: int) -> Ints:
    """tanh of numbers with so many bits before the point, in Q0.15."""
    return _int16(curve(x, made.tanh(bits))) if made.tables else tanh16(x, bits)


def macs(node: Node, graph: Graph) -> int:
    steps, batch, width, units = sizes(node, graph)
    return steps * batch * GATES * units * (width + units)
