"""Layers with int8 weights whose input is quantised at run time, by its own range.
DynamicQuantizeLinear with ConvInteger or MatMulInteger becomes int8 and plain sums, as
in .tflite files of dynamic range; a pass joins them with the scales that follow.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import flowing
from pybuild.frontends.onnx.operators.spatial import arranged_conv, from_rows, to_rows
from pybuild.ir.graph import Attr, Node, Tensor
from pybuild.ops import OPERATORS
from pybuild.ops.hybrid import NO_PADS, most_taps


@flowing
def quantize(flow: Flow) -> None:
    """DynamicQuantizeLinear; readers of its output may quantise its input again."""
    x = flow.arg(0)
    q, scale, zero = _quantized(flow, x, {})
    eight = flow.add(flow.cast(q, DType.INT32), flow.const(128, DType.INT32))
    flow.give(flow.cast(eight, DType.UINT8))
    flow.give(flow.reshape(scale, ()), 1)
    point = flow.add(flow.reshape(zero, ()), flow.const(128, DType.INT32))
    flow.give(flow.cast(point, DType.UINT8), 2)
    outputs = (*flow.op.outputs, "", "")
    flow.draft.dynamic[outputs[0]] = (x, outputs[2])


def _quantized(flow: Flow, x: str, attrs: dict[str, Attr]) -> tuple[str, str, str]:
    """Return a tensor as int8, its scale and its zero point."""
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


def _source(flow: Flow) -> str:
    """Return the float tensor behind the first input, if the weights are known and both
    zero points suit int8 sums; else ""."""
    op, draft = flow.op, flow.draft
    x, point = draft.dynamic.get(op.input(0), ("", ""))
    weights = draft.known(op.input(1))
    if not x or not point or op.input(2) != point or weights is None:
        return ""
    middle = 128 if weights.dtype == np.uint8 else 0
    if flow.has(3):
        zero = draft.known(op.input(3))
        return x if zero is not None and (zero == middle).all() else ""
    return x if middle == 0 else ""


def _less_zero(flow: Flow, sums: str, zero: str, weights: str, axis: int) -> str:
    """Correct sums of products with q into sums of products with q - zero."""
    rank = flow.rank(weights)
    others = [a for a in range(rank) if a != axis]
    wide = flow.cast(weights, DType.INT32)
    totals = flow.reduce("sum", wide, others, False)
    return flow.sub(sums, flow.mul(zero, totals))


def conv_sums(flow: Flow) -> bool:
    """Write a ConvInteger as a layer of int8 sums; return False if it is not one."""
    x, op, draft = _source(flow), flow.op, flow.draft
    if not x or flow.rank(x) not in (3, 4):
        return False
    try:
        kind, attrs, weights = arranged_conv(draft, op, x)
    except BuildError:  # a window that other kernels have
        return False
    if any(attrs["pads"]) and draft.shape(x)[0] > 1:
        return False
    axis = 2 if kind == "depthwise_conv2d" else 0
    if not most_taps(draft.shape(weights), axis):
        return False
    rank = flow.rank(x)
    pads = {"pads": attrs["pads"]} if any(attrs["pads"]) else {}
    q, _, zero = _quantized(flow, to_rows(draft, op, x), pads)
    sums = flow.emit(f"{kind}_sums", [q, weights], {**attrs, "pads": NO_PADS})
    from_rows(draft, op, _less_zero(flow, sums, zero, weights, axis), rank)
    return True


def matmul_sums(flow: Flow) -> bool:
    """Write a MatMulInteger as a layer of int8 sums; return False if it is not one."""
    x, op, draft = _source(flow), flow.op, flow.draft
    if not x or not flow.rank(x) or len(draft.shape(op.input(1))) != 2:
        return False
    depth, outs = draft.shape(op.input(1))
    if not most_taps((outs, depth), 0):
        return False
    weights = draft.arranged(op, op.input(1), (1, 0), (outs, depth), "weight")
    q, _, zero = _quantized(flow, x, {})
    sums = flow.emit("dense_sums", [q, weights])
    flow.give(_less_zero(flow, sums, zero, weights, 0))
    return True
