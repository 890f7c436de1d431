"""svdf: a dense layer whose results of the last runs are kept and weighed over time."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    Types,
    Values,
    clamped,
    invalid,
    must_have_shape,
    must_have_type,
    operand,
    optional,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    requantize,
    saturated,
)
from pybuild.ops.recurrent import Pair, must_fit
from pybuild.records import dataclass

X, STATE, FEATURE, TIME, BIAS = range(5)


@dataclass(frozen=True)
class SvdfParameters:
    """Every integer of a quantised svdf:

    new = held(requantize(sum(feature * (x - x_zero)), *seen)) + state_zero, which
        wraps
    y = held(requantize(bias + sum(time * (state - state_zero)), *made) + y_zero)

    Held within the type; the sum over time wraps as int32.
    Source  LiteRT EvalIntegerSVDF; a state of int8: TFLM EvalIntegerSvdfReference
    """

    x_zero: int
    state_zero: int
    y_zero: int
    seen: Pair
    made: Pair


def sizes(node: Node, graph: Graph) -> tuple[int, int, int, int, int]:
    """batch, width, units, rank, memory: steps that are kept

    Errors  BuildError for shapes that do not fit each other
    """
    x, state = operand(node, graph, X), operand(node, graph, STATE)
    feature, time = operand(node, graph, FEATURE), operand(node, graph, TIME)
    rank = int(node.attrs["rank"])
    if not all(len(t.shape) == 2 for t in (x, feature, time)):
        raise invalid(node, graph, "needs x, feature and time weights of two axes")
    (batch, width), (filters, memory) = x.shape, time.shape
    if filters % rank:
        raise invalid(node, graph, f"{filters} filters are not a multiple of {rank}")
    wanted: dict[Tensor, tuple[int, ...]]
    wanted = {state: (batch, filters * memory), feature: (filters, width)}
    bias = optional(node, graph, BIAS)
    if bias is not None:
        wanted[bias] = (filters // rank,)
    for tensor, shape in wanted.items():
        must_have_shape(node, graph, tensor, shape)
    return batch, width, filters // rank, rank, memory


def infer_svdf(node: Node, graph: Graph) -> Types:
    """attrs rank, clamp (of float). Shapes  x [B,I]  state [B,F*M]  feature [F,I]
    time [F,M]  bias [U]; y [B,U] with F = U * rank; the next state
    """
    batch, _, units, _, _ = sizes(node, graph)
    x, state = operand(node, graph, X), operand(node, graph, STATE)
    _types(node, graph, x.dtype, state.dtype)
    return ((batch, units), x.dtype), (state.shape, state.dtype)


def _types(node: Node, graph: Graph, kind: DType, kept: DType) -> None:
    """Checks the types of an SVDF.

    Errors  BuildError for a mixture that no kernel has
    """
    whole = kind is DType.INT8 and kept in (DType.INT8, DType.INT16)
    if not whole and (kind, kept) != (DType.FLOAT32, DType.FLOAT32):
        what = f"'{operand(node, graph, X).name}' is {kind.value}, the state {kept}"
        hint = "svdf is for float32, and int8 with a state of int8 or int16"
        raise invalid(node, graph, what, hint)
    wanted = {FEATURE: kind, TIME: kept, BIAS: DType.INT32 if whole else kind}
    for index, dtype in wanted.items():
        tensor = optional(node, graph, index)
        if tensor is not None:
            must_have_type(node, graph, tensor, dtype)
    if whole:
        svdf_parameters(node, graph)


def svdf_parameters(node: Node, graph: Graph) -> SvdfParameters:
    """The parameters of an SVDF.

    Errors  BuildError for scales that the reference kernels do not take
    """
    x, state, feature, time = (operand(node, graph, i) for i in range(BIAS))
    y = graph.tensor(node.output)
    for tensor in (x, state, feature, time, y):
        whole_quant(node, graph, tensor)
    for weights in (feature, time):
        if weights.zero_point:
            what = f"weights '{weights.name}' have a zero point"
            raise invalid(node, graph, what, "quantise weights symmetrically")
    if state.dtype is DType.INT16 and state.zero_point:
        raise invalid(node, graph, f"'{state.name}' is int16 with a zero point")
    made = SvdfParameters(
        x.zero_point, state.zero_point, y.zero_point,
        _scale(x, feature, state), _scale(state, time, y),
    )  # fmt: skip
    _must_fit(node, graph, made)
    return made


def _scale(a: Tensor, b: Tensor, to: Tensor) -> Pair:
    """The scale as LiteRT computes it, in float32."""
    scale = np.float32(a.scale) * np.float32(b.scale) / np.float32(to.scale)
    return quantize_multiplier(float(scale))


def _must_fit(node: Node, graph: Graph, made: SvdfParameters) -> None:
    """Checks that scaled values fit int32.

    Errors  BuildError where what is scaled could leave int32
    """
    if made.made[1] > 0:
        what = "the scales of the state and of the output are too far apart"
        raise invalid(node, graph, what, "calibrate the output of this layer")
    must_fit(node, graph, FEATURE, operand(node, graph, X), None, made.seen)


def svdf(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The reference of svdf in numpy."""
    batch, _, units, rank, memory = sizes(node, graph)
    x, state, feature, time = (value(values, i) for i in range(BIAS))
    given = optional(node, graph, BIAS) is not None
    bias = value(values, BIAS) if given else np.zeros(units)
    rows = state.reshape(batch, units * rank, memory)
    whole = state.dtype != np.float32
    kind = np.int64 if whole else np.float64
    x, feature, time, bias = (a.astype(kind) for a in (x, feature, time, bias))
    if not whole:
        new = (x @ feature.T).astype(np.float32)[..., None]
        kept = np.concatenate([rows[..., 1:], new], -1)
        sums = (kept.astype(np.float64) * time).sum(-1)
        total = sums.reshape(batch, units, rank).sum(-1) + bias
        y = clamped(node, total.astype(np.float32))
        return y, kept.reshape(state.shape)
    made = svdf_parameters(node, graph)
    seen = requantize((x - made.x_zero) @ feature.T, *made.seen, "double")
    held = saturated(seen, operand(node, graph, STATE).dtype)
    new = (held.astype(np.int64) + made.state_zero).astype(held.dtype)
    kept = np.concatenate([rows[..., 1:], new[..., None]], -1)
    sums = ((kept.astype(np.int64) - made.state_zero) * time).sum(-1)
    total = sums.reshape(batch, units, rank).sum(-1) + bias
    scaled = requantize(total.astype(np.int32), *made.made, "double")
    dtype = graph.tensor(node.output).dtype
    return saturated(scaled + made.y_zero, dtype), kept.reshape(state.shape)


def macs(node: Node, graph: Graph) -> int:
    batch, width, units, rank, memory = sizes(node, graph)
    return batch * units * rank * (width + memory)
