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
    feature, time = optional(node, graph, FEATURE), operand(node, graph, TIME)
    rank = int(node.attrs["rank"])
    if not all(t is None or len(t.shape) == 2 for t in (x, feature, time)):
        raise invalid(node, graph, "needs x, feature and time weights of two axes")
    (batch, width), (filters, memory) = x.shape, time.shape
    if filters % rank:
        raise invalid(node, graph, f"{filters} filters are not a multiple of {rank}")
    wanted: dict[Tensor, tuple[int, ...]] = {state: (batch, filters * memory)}
    if feature is None:
        wanted[x] = (batch, filters)
    else:
        wanted[feature] = (filters, width)
    bias = optional(node, graph, BIAS)
    if bias is not None:
        wanted[bias] = (filters // rank,)
    for tensor, shape in wanted.items():
        must_have_shape(node, graph, tensor, shape)
    return batch, width, filters // rank, rank, memory


def infer_svdf(node: Node, graph: Graph) -> Types:
    """attrs rank, clamp (of float). Shapes  x [B,I]  state [B,F*M]  feature [F,I]
    time [F,M]  bias [U]; y [B,U] with F = U * rank; the next state

    Of float32 time may be int8 with a scale. Without feature x [B,F] is what the
    filters made of the input.
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
    if whole:
        operand(node, graph, FEATURE)
    elif operand(node, graph, TIME).dtype is DType.INT8:
        del wanted[TIME]
        _must_be_scaled(node, graph, operand(node, graph, TIME))
    for index, dtype in wanted.items():
        tensor = optional(node, graph, index)
        if tensor is not None:
            must_have_type(node, graph, tensor, dtype)
    if whole:
        svdf_parameters(node, graph)


def _must_be_scaled(node: Node, graph: Graph, time: Tensor) -> None:
    whole_quant(node, graph, time)
    if time.zero_point:
        what = f"weights '{time.name}' have a zero point"
        raise invalid(node, graph, what, "quantise weights symmetrically")


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
    if graph.tensor(node.output).dtype is DType.FLOAT32:
        return _of_reals(node, graph, values)
    batch, _, units, rank, memory = sizes(node, graph)
    state = value(values, STATE)
    x, feature, time = (value(values, i).astype(np.int64) for i in (X, FEATURE, TIME))
    given = optional(node, graph, BIAS) is not None
    bias = value(values, BIAS).astype(np.int64) if given else np.zeros(units, np.int64)
    rows = state.reshape(batch, units * rank, memory)
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


def _of_reals(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The same of float32.

    Source  LiteRT EvalFloatSVDF, EvalHybridSVDF on processors with four lanes
    """
    batch, _, units, rank, memory = sizes(node, graph)
    x, state, time = (value(values, i) for i in (X, STATE, TIME))
    if time.dtype == np.int8:
        time = time * np.float32(operand(node, graph, TIME).scale)
    with np.errstate(all="ignore"):
        if optional(node, graph, FEATURE) is not None:
            x = np.stack([_in_lanes(row * value(values, FEATURE)) for row in x])
        rows = state.reshape(batch, units * rank, memory)
        kept = np.concatenate([rows[..., 1:], x[..., None]], -1)
        sums = _in_lanes(kept * time).reshape(batch, units, rank)
        total = _in_lanes(sums)
        if optional(node, graph, BIAS) is not None:
            total = total + value(values, BIAS)
    y = clamped(node, total).astype(np.float32)
    return y, kept.reshape(state.shape)


LANES = 4  # sums of float32 products that are added up apart


def _in_lanes(products: Array) -> Array:
    """Sums over the last axis: every fourth product, then these four; then what is left
    over, one by one."""
    whole = products.shape[-1] // LANES * LANES
    lanes = [_one_by_one(products[..., i:whole:LANES]) for i in range(LANES)]
    rest = np.moveaxis(products[..., whole:], -1, 0)
    return _one_by_one(np.stack([*lanes, *rest], -1))


def _one_by_one(x: Array) -> Array:
    """The sum over the last axis in its order, each rounded to float32."""
    if not x.shape[-1]:
        return np.zeros(x.shape[:-1], np.float32)
    made: Array = np.cumsum(x, -1, dtype=np.float32)[..., -1]
    return made


def macs(node: Node, graph: Graph) -> int:
    batch, width, units, rank, memory = sizes(node, graph)
    inputs = width if optional(node, graph, FEATURE) is not None else 0
    return batch * units * rank * (inputs + memory)
