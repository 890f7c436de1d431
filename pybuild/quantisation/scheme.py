"""Chooses the operators of a float graph that become int8, and how its tensors are
quantised."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Quant
from pybuild.passes.qdq import COMPUTED, WEIGHTED
from pybuild.quantisation.curves import is_smooth
from pybuild.quantisation.ranges import Range
from pybuild.quantisation.regions import CURVE, Region, regions
from pybuild.quantisation.transformer import is_move, wide_nodes
from pybuild.records import dataclass

# what LiteRT's int8 kernels give these, and what their values can be at all
_FIXED = {
    "softmax": (0.0, 255 / 256),
    "logistic": (0.0, 255 / 256),
    "tanh": (-1.0, 127 / 128),
}
# which softmax has whatever it reads, as LiteRT's; in int16 logistic and tanh too
SHARES = {
    DType.INT8: Quant((1 / 256,), (-128,)),
    DType.INT16: Quant((1 / 32768,), (0,)),
}
# part of a norm or of a function that is written out
_SMOOTH = ("add", "sub", "mul", "mean", "softmax")
CHOSEN = "named to stay float"
# output -> why its node stays float
Reasons = dict[str, str]


@dataclass(frozen=True)
class Fitted:
    """Weights of a layer that were fitted to the samples.

    Shapes  steps  as the weights are arranged, int8; scale [O]: of each output channel
    """

    steps: Array
    scale: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scheme:
    """integers  outputs of the nodes that become integers
    quants    int8 of each tensor that such a node reads or makes; wide: int16
    floats    outputs of the nodes that stay float, and why
    wides     of `integers`, those with int16 activations
    fitted    weights by output of their layer; others are rounded to the nearest step
    regions   of several nodes that become one of int16, by output, which is in `wides`
    """

    integers: frozenset[str]
    quants: Mapping[str, Quant]
    wide: Mapping[str, Quant]
    floats: Mapping[str, str]
    wides: frozenset[str]
    fitted: Mapping[str, Fitted] = field(default_factory=dict)
    regions: Mapping[str, Region] = field(default_factory=dict)

    def quant(self, name: str, dtype: DType) -> Quant:
        return (self.wide if dtype is DType.INT16 else self.quants)[name]

    def kind(self, node: Node) -> DType:
        """The output type of a node; FLOAT32: the node stays float."""
        if node.output not in self.integers:
            return DType.FLOAT32
        return DType.INT16 if node.output in self.wides else DType.INT8


def scheme(
    graph: Graph,
    ranges: Mapping[str, Range],
    kept: Mapping[str, str],
    wide: Collection[str] = (),
    alike: Collection[Collection[str]] = (),
) -> Scheme:
    """kept  outputs of nodes that must stay float, and why
    wide  outputs of nodes with int16 activations
    alike  tensors that have one range: of the steps of a loop
    """
    wide = {*wide, *(n for each in alike if {*each} & {*wide} for n in each)}
    parts = regions(graph)
    for one in parts.values():  # a part of what is one operator is all of it
        why = next((kept[n.output] for n in one.nodes if n.output in kept), "")
        kept = {**kept, **{n.output: why for n in one.nodes if why}}
    within = wide_nodes(graph, parts) - kept.keys()
    parts = {
        name: one
        for name, one in parts.items()
        if name in within and _fits(graph, one, ranges)
    }
    inside = {n.output for one in parts.values() for n in one.nodes} - parts.keys()
    wide |= within
    floats = {**_refused_parts(graph, parts, within), **kept}
    floats |= _smooth(graph, floats, wide)
    floats |= _alone(graph, floats)
    made = {node.output for node in graph.nodes}
    for each in alike:
        why = next((floats[name] for name in each if name in floats), "")
        floats |= dict.fromkeys(made & {*each}, why) if why else {}
    integers = frozenset(made - floats.keys() - inside)
    covered = _ranges(graph, integers, ranges, alike, parts)
    wides = set(integers & set(wide))
    users, moves = graph.consumers(), [n for n in graph.nodes if is_move(n, graph)]
    for node in moves:  # what moves int16 values, or only to int16, moves int16
        if node.output in integers and wides & set(node.inputs):
            wides.add(node.output)
    for node in reversed(moves):
        read = {user.output for user in users[node.output]}
        if node.output in integers and read and read <= wides:
            wides.add(node.output)
    held = {name: wide_activation(*each) for name, each in covered.items()}
    for node in graph.nodes:
        if node.output in wides and covered[node.output] == _FIXED.get(node.op):
            held[node.output] = SHARES[DType.INT16]
    return Scheme(
        integers,
        {name: activation(*each) for name, each in covered.items()},
        held,
        {name: why for name, why in floats.items() if name not in inside},
        frozenset(wides),
        regions=parts,
    )


def _fits(graph: Graph, region: Region, ranges: Mapping[str, Range]) -> bool:
    if region.op != CURVE:
        return True
    scale = wide_activation(*ranges[region.source]).scale[0]
    reach = max(-ranges[region.output][0], ranges[region.output][1])
    return is_smooth(graph, region, scale, reach)


def _refused_parts(
    graph: Graph, parts: Mapping[str, Region], within: Collection[str]
) -> Reasons:
    """`refused`, but for what is an integer operator as a part of a transformer."""
    found = refused(graph)
    inside = {n.output for one in parts.values() for n in one.nodes}
    products = {n.output for n in graph.nodes if n.op == "matmul"} & set(within)
    return {n: why for n, why in found.items() if n not in inside | products}


def moved(node: Node) -> list[str]:
    """The inputs that hold values: not the indices of a gather."""
    return [name for name in node.inputs[: 1 if node.op == "gather" else None] if name]


def refused(graph: Graph) -> Reasons:
    """The nodes that have no int8 form, whatever the ranges."""
    found: Reasons = {}
    for node in graph.nodes:
        why = _why_float(node, graph)
        if why:
            found[node.output] = why
    return found


def _why_float(node: Node, graph: Graph) -> str:
    known = (*WEIGHTED, *COMPUTED, "matmul")
    if node.op not in known and not is_move(node, graph):
        return f"'{node.op}' has no int8 form here"
    names = [*moved(node), *node.outputs]
    other = [n for n in names if graph.tensor(n).dtype is not DType.FLOAT32]
    if other:
        return f"'{other[0]}' is {graph.tensor(other[0]).dtype.value}"
    if node.op in WEIGHTED:
        open_ = [n for n in node.inputs[1:] if n and not graph.known(n)]
        return f"its weights '{open_[0]}' are not constant" if open_ else ""
    if any(name in graph.parameters for name in moved(node)):
        return "it reads a replaceable parameter"
    return ""


def _smooth(graph: Graph, floats: Mapping[str, str], wide: Collection[str]) -> Reasons:
    """Sums, products and means around functions that have no int8 form: all of a norm
    but what it reads, all of a GELU. Eight bits for each of their values in between
    would lose more than all weights do.
    """
    kinds = ("map", "matmul")
    functions = {n.output for n in graph.nodes if n.op in kinds and n.output in floats}
    users, near = graph.consumers(), set(functions)
    some = [n for n in graph.nodes if n.op in _SMOOTH or is_move(n, graph)]
    some = [n for n in some if n.output not in floats and n.output not in wide]
    grew = bool(near)
    while grew:
        before = len(near)
        for node in (*some, *reversed(some)):
            reads = [n for n in node.inputs if n and n not in graph.constants]
            held = [n in near for n in reads]
            enough = any(held) if node.op == "mul" else bool(held) and all(held)
            asked = users[node.output] if node.output not in graph.outputs else ()
            wanted = bool(asked) and all(user.output in near for user in asked)
            if (enough and wanted) if node.op == "softmax" else (enough or wanted):
                near.add(node.output)
        grew = len(near) > before
    why = "it stands between functions that have no int8 form here"
    return dict.fromkeys(sorted(near - functions), why)


def _alone(graph: Graph, floats: Mapping[str, str]) -> Reasons:
    """The nodes that only move values between operators that stay float, with the
    reason."""
    near: set[str] = set()
    moves = [n for n in graph.nodes if is_move(n, graph) and n.output not in floats]
    for node in graph.nodes:
        if node.output not in floats and not is_move(node, graph):
            near.update(n for n in (*node.inputs, *node.outputs) if n)
    for node in moves:
        if near & set(node.inputs):
            near.update(node.outputs)
    for node in reversed(moves):
        if near & set(node.outputs):
            near.update(node.inputs)
    why = "it only moves values of operators that stay float"
    return {n.output: why for n in moves if not near & {*n.inputs, n.output}}


class Groups:
    """Tensors that movement keeps in one quantisation."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def root(self, name: str) -> str:
        while self._parent.get(name, name) != name:
            name = self._parent[name]
        return name

    def join(self, a: str, b: str) -> None:
        self._parent[self.root(a)] = self.root(b)


def _ranges(
    graph: Graph,
    integers: frozenset[str],
    ranges: Mapping[str, Range],
    alike: Collection[Collection[str]],
    parts: Mapping[str, Region],
) -> dict[str, Range]:
    """The range of each tensor that an integer node reads or makes."""
    groups, covered = Groups(), dict(ranges)
    for first, *rest in alike:
        for name in rest:
            groups.join(first, name)
    touched: dict[str, None] = {}
    for node in graph.nodes:
        if node.output not in integers:
            continue
        reads = moved(node)[: 1 if node.op in WEIGHTED else None]
        if node.output in parts:
            reads = [parts[node.output].source]
        for name in reads:
            touched[name] = None
            if name in graph.constants:
                covered[name] = _of_constant(graph, name)
        touched[node.output] = None
        if node.op in _FIXED:
            covered[node.output] = _FIXED[node.op]
        if node.op == "pad":
            covered[node.output] = _with(covered[node.output], node)
        if is_move(node, graph):
            for name in reads:
                groups.join(name, node.output)
    whole: dict[str, Range] = {}
    for name in touched:
        root, (low, high) = groups.root(name), covered[name]
        before = whole.get(root, (0.0, 0.0))
        whole[root] = min(low, before[0]), max(high, before[1])
    return {name: whole[groups.root(name)] for name in touched}


def _of_constant(graph: Graph, name: str) -> Range:
    value = graph.constants[name]
    return min(float(value.min()), 0.0), max(float(value.max()), 0.0)


def _with(covered: Range, node: Node) -> Range:
    """The padding's value too, where it is a number of the tensor's size."""
    value = float(node.attrs.get("value", 0.0))
    if not np.isfinite(value) or abs(value) > 1e6:
        return covered
    return min(covered[0], value), max(covered[1], value)


def activation(low: float, high: float) -> Quant:
    """256 steps from `low` to `high`, zero being one of them."""
    if high - low < 1e-30:
        return Quant((1.0,), (-128,))
    scale = float(np.float32((high - low) / 255))
    return Quant((scale,), (int(np.clip(round(-128 - low / scale), -128, 127)),))


def wide_activation(low: float, high: float) -> Quant:
    """int16 around zero, without a zero point, as its kernels want it.

    Of what was zero on all samples -1..1: more would scale what a layer with small
    outputs could make of it beyond 32 bits.
    """
    top = max(-low, high)
    scale = float(np.float32(top / 32767)) if top > 1e-30 else 1 / 32768
    return Quant((scale,), (0,))
