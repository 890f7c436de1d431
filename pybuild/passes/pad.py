"""Pad fusion: padding goes into the window operator after it, where that is exact."""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.conv_types import INPUT_DILATIONS
from pybuild.ops.interpret import operator_of
from pybuild.ops.shape import pad_fill
from pybuild.passes.edit import Edit


def fuse_pad(graph: Graph) -> Graph:
    """pad then conv2d, depthwise_conv2d, avg_pool2d or max_pool2d, as one node."""
    edit = Edit(graph)
    producers = graph.producers()
    for node in graph.nodes:
        pad = producers.get(node.inputs[0]) if node.inputs else None
        if pad is not None and pad.op == "pad" and _spatial(pad):
            fused = _fused(node, pad, graph)
            if fused is not None and _allowed(fused, graph):
                edit.keep(fused)
                continue
        edit.keep(node)
    return edit.done()


def _spatial(pad: Node) -> bool:
    pads = pad.attrs["pads"]
    return len(pads) == 4 and pads[0] == pads[3] == (0, 0)


def _fused(node: Node, pad: Node, graph: Graph) -> Node | None:
    x = graph.tensor(pad.inputs[0])
    fill = pad_fill(pad, graph)
    zero = x.zero_point if x.quant is not None else 0
    had = tuple(node.attrs.get("pads", (0, 0, 0, 0)))
    (top, bottom), (left, right) = pad.attrs["pads"][1:3]
    down, across = node.attrs.get(INPUT_DILATIONS, (1, 1))
    more = (top * down, left * across, bottom * down, right * across)
    if node.op == "pad" or len(had) != 4:
        return None
    pads = tuple(a + b for a, b in zip(had, more, strict=True))
    inputs = (pad.inputs[0], *node.inputs[1:])
    match node.op:
        case "conv2d" | "depthwise_conv2d" if fill == zero:
            return replace(node.with_attrs(pads=pads), inputs=inputs)
        case "avg_pool2d" if fill == 0 and x.dtype is DType.FLOAT32 and not any(had):
            made = node.with_attrs(pads=pads, count_include_pad=True)
            return replace(made, inputs=inputs)
        case "max_pool2d" if fill == _least(x.dtype):
            return replace(node.with_attrs(pads=pads), inputs=inputs)
    return None


def _least(dtype: DType) -> float:
    return float("-inf") if dtype is DType.FLOAT32 else dtype.low


def _allowed(node: Node, graph: Graph) -> bool:
    try:
        made = operator_of(node, graph).infer(node, graph)
    except BuildError:
        return False
    return made[0][0] == graph.tensor(node.output).shape
