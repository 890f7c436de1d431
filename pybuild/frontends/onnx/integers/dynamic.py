"""Layers with int8 weights whose input is quantised at run time, by its own range.
DynamicQuantizeLinear with ConvInteger or MatMulInteger becomes int8 and plain sums, as
in .tflite files of dynamic range; a pass joins them with the scales that follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import flowing
from pybuild.frontends.onnx.operators.spatial import arranged_conv, from_rows, to_rows
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Attr, Node, Tensor
from pybuild.ops import OPERATORS
from pybuild.ops.fixed_point.centred import less_zero
from pybuild.ops.hybrid import NO_PADS, most_taps
from pybuild.records import dataclass

# names of int8 values, of their scale and of their zero point
Quantised = tuple[str, str, str]


@flowing
def quantize(flow: Flow) -> None:
    """DynamicQuantizeLinear; readers of its output may quantise its input again."""
    x = flow.arg(0)
    q, scale, zero = quantised(flow, x)
    eight = flow.add(flow.cast(q, DType.INT32), flow.const(128, DType.INT32))
    flow.give(flow.cast(eight, DType.UINT8))
    flow.give(flow.reshape(scale, ()), 1)
    point = flow.add(flow.reshape(zero, ()), flow.const(128, DType.INT32))
    flow.give(flow.cast(point, DType.UINT8), 2)
    outputs = (*flow.op.outputs, "", "")
    flow.draft.dynamic[outputs[0]] = (x, outputs[2])


def quantised(
    flow: Flow, x: str, attrs: Mapping[str, Attr] = MappingProxyType({})
) -> Quantised:
    """A tensor as int8, its scale and its zero point."""
    draft = flow.draft
    draft.budget.take_nodes()
    draft.tensor(x)
    q, scale, zero = (draft.fresh(f"{x}.{n}") for n in ("int8", "scale", "zero"))
    attrs = {"batches": 1, "rule": "onnx", **attrs}
    node = Node("quantize_dynamic", q, (x,), (q, scale, zero), attrs)
    made = OPERATORS[node.op].infer(node, draft.view)
    for name, (shape, dtype) in zip(node.outputs, made, strict=True):
        draft.tensors[name] = Tensor(name, shape, dtype)
    draft.nodes.append(node)
    return q, scale, zero


def _layer(flow: Flow, axis: int) -> tuple[str, Op] | None:
    """What was quantised to be the first input, and the operator with weights of sums:
    int8, or int16 of nine bits, whose zero points are taken out. None where the second
    input is not known, or another quantises the first.

    axis  of the weights, along which there may be a zero point each
    """
    op, draft = flow.op, flow.draft
    x, point = draft.dynamic.get(op.input(0), ("", ""))
    weights = draft.known(op.input(1))
    if not x or not point or op.input(2) != point or weights is None:
        return None
    zero: Array | None = np.zeros(1, weights.dtype)
    if flow.has(3):
        zero = draft.known(op.input(3))
    if zero is None or (zero.ndim > 1 and zero.size > 1):
        return None
    if zero.size not in (1, weights.shape[axis]):
        return None
    if (zero == (128 if weights.dtype == np.uint8 else 0)).all():
        return x, op  # as the file's own, by the names that users know
    name = draft.constant(f"{op.input(1)}.centred", less_zero(weights, zero, axis))
    return x, replace(op, inputs=(op.inputs[0], name, *op.inputs[2:]))


def _less_zero(flow: Flow, sums: str, zero: str, weights: str, axis: int) -> str:
    """Correct sums of products with q into sums of products with q - zero."""
    rank = flow.rank(weights)
    others = [a for a in range(rank) if a != axis]
    wide = flow.cast(weights, DType.INT32)
    totals = flow.reduce("sum", wide, others, False)
    return flow.sub(sums, flow.mul(zero, totals))


def conv_sums(flow: Flow) -> bool:
    """Whether a ConvInteger is a layer of int8 sums; then it is written."""
    found, draft = _layer(flow, 0), flow.draft
    if found is None or flow.rank(found[0]) not in (3, 4):
        return False
    x, op = found
    try:
        kind, attrs, weights = arranged_conv(draft, op, x)
    except BuildError:  # a window that other kernels have
        return False
    if any(attrs["pads"]) and draft.shape(x)[0] > 1:
        return False
    axis = 2 if kind == "depthwise_conv2d" else 0
    if not most_taps(draft.shape(weights), axis, draft.tensor(weights).dtype):
        return False
    rank = flow.rank(x)
    pads = {"pads": attrs["pads"]} if any(attrs["pads"]) else {}
    q, _, zero = quantised(flow, to_rows(draft, op, x), pads)
    sums = flow.emit(f"{kind}_sums", [q, weights], {**attrs, "pads": NO_PADS})
    from_rows(draft, op, _less_zero(flow, sums, zero, weights, axis), rank)
    return True


def matmul_sums(flow: Flow) -> bool:
    """Whether a MatMulInteger is a layer of int8 sums; then it is written."""
    found, draft = _layer(flow, -1), flow.draft
    if found is None or not flow.rank(found[0]):
        return False
    x, op = found
    if len(draft.shape(op.input(1))) != 2:
        return False
    depth, outs = draft.shape(op.input(1))
    weights = draft.arranged(op, op.input(1), (1, 0), (outs, depth), "weight")
    if not most_taps((outs, depth), 0, draft.tensor(weights).dtype):
        return False
    q, _, zero = quantised(flow, x)
    sums = flow.emit("dense_sums", [q, weights])
    flow.give(_less_zero(flow, sums, zero, weights, 0))
    return True


@dataclass(frozen=True)
class RealLayer:
    """Constants of a dense layer with int8 inputs and float32 outputs.

    weights  int8 [N,K], or int16 of nine bits: less their zero points
    factor   float32 [1] or [N]: their scales; bias: float32 [N], or ""
    """

    weights: str
    factor: str
    bias: str = ""


def real_product(flow: Flow, x: Quantised, layer: RealLayer) -> str:
    """x [M,K] times weights, float32 [M,N]."""
    q, scale, zero = x
    sums = flow.emit("dense_sums", [q, layer.weights])
    names = [sums, scale, layer.factor, layer.bias, zero, layer.weights]
    return flow.emit("scale_sums", names, {"sums_first": False, "axis": 0})


def real_layer(
    flow: Flow, weights: Array, scale: Array, zero: Array, bias: Array | None
) -> RealLayer:
    """The constants; weights [K,N], scale and zero of one number, or of N.

    Errors  BuildError where a sum could leave int32
    """
    if weights.dtype not in (np.int8, np.uint8) or weights.ndim != 2:
        what = f"its weights are {weights.dtype}{[*weights.shape]}"
        raise flow.op.invalid(what, "int8 or uint8, [inputs, outputs]")
    value = np.ascontiguousarray(less_zero(weights, zero, 1).T)
    if not most_taps(value.shape, 0, DType.of(value)):
        raise flow.op.invalid(f"sums of {value.shape[1]} products do not fit 32 bits")
    constant, name = flow.draft.constant, flow.op.output
    factor = constant(f"{name}.scale", scale.astype(np.float32).reshape(-1))
    added = "" if bias is None else constant(f"{name}.bias", bias.astype(np.float32))
    return RealLayer(constant(f"{name}.weights", value), factor, added)


@flowing
def quantize_by_range(flow: Flow) -> None:
    """Of torch's choose_qparams and quantize_per_tensor: int8, scale, zero point."""
    attrs = {"rule": "torch", "eps": float(flow.op.attrs.get("eps", 0.0))}
    q, scale, zero = quantised(flow, flow.arg(0), attrs)
    flow.give(q)
    flow.give(flow.reshape(scale, ()), 1)
    flow.give(flow.reshape(zero, ()), 2)


@flowing
def linear_of_range(flow: Flow) -> None:
    """A linear layer: int8, scale and zero point of the input; weights [N,K] with
    theirs, perhaps a bias."""
    bias = flow.value(6, "bias") if flow.has(6) else None
    weights, factor, point = (
        flow.value(index, what)
        for index, what in ((3, "weights"), (4, "scale"), (5, "zero point"))
    )
    layer = real_layer(flow, weights.T, factor, point, bias)
    scale, zero = (flow.reshape(flow.arg(index), (1,)) for index in (1, 2))
    flow.give(real_product(flow, (flow.arg(0), scale, zero), layer))
