"""Bias correction: what rounding the weights adds to each output on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ops.act import Float32s
from pybuild.ops.interpret import operator_of
from pybuild.passes.edit import Edit
from pybuild.passes.qdq import WEIGHTED
from pybuild.quantisation.ranges import Observed
from pybuild.quantisation.rewrite import weight_error
from pybuild.quantisation.scheme import Scheme


def corrected(graph: Graph, scheme: Scheme, seen: Mapping[str, Observed]) -> Graph:
    """The float graph with biases that take the mean error of int8 weights back.

    A layer is linear: its mean error is what the error of the weights makes of the
    mean input.
    """
    edit = Edit(graph)
    shifts: dict[tuple[str, ...], list[Float32s]] = {}
    for node in graph.nodes:
        if _is_moved(node, scheme) and node.inputs[0] in seen:
            one = _shift(node, graph, seen[node.inputs[0]], scheme)
            shifts.setdefault(node.inputs[1:], []).append(one)
    made: dict[tuple[str, ...], str] = {}
    for node in graph.nodes:
        key = node.inputs[1:]
        if _is_moved(node, scheme) and key in shifts:
            if key not in made:  # layers that read the same have the same afterwards
                mean = np.asarray(np.mean(shifts[key], axis=0, dtype=np.float64))
                made[key] = _bias(edit, node, mean.astype(np.float32))
            node = replace(node, inputs=(*node.inputs[:2], made[key]))
        edit.keep(node)
    return edit.done()


def _is_moved(node: Node, scheme: Scheme) -> bool:
    return node.op in WEIGHTED and node.output in scheme.integers


def _shift(node: Node, graph: Graph, x: Observed, scheme: Scheme) -> Float32s:
    """float32[O], the mean over all positions of one output channel."""
    error = weight_error(node, graph, scheme)
    attrs = {k: v for k, v in node.attrs.items() if k != "clamp"}
    plain = replace(node, inputs=node.inputs[:2], attrs=attrs)
    mean = x.mean.astype(np.float32)
    (made,) = operator_of(plain, graph).reference(plain, graph, [mean, error])
    whole = made.astype(np.float64)
    return np.asarray(whole.reshape(-1, made.shape[-1]).mean(0), np.float32)


def _bias(edit: Edit, node: Node, shift: Float32s) -> str:
    before = node.inputs[2] if len(node.inputs) > 2 else ""
    value: Array = shift
    if before:
        value = np.asarray(edit.constants[before].astype(np.float32) + shift)
    return edit.constant(f"{before or node.output}.corrected", value)
