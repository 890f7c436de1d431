"""Folds channels whose integer never changes into the next bias, and drops them.

Ranges go forward through the graph, by channel; what some reader needs goes back.
Every output of the model stays bit for bit what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import DType, Ints
from pybuild.ir.graph import Graph, Node, Quant
from pybuild.ops.conv import conv_parameters
from pybuild.passes.channels.maps import ABSENT, followed, mixes, resliced, weighted
from pybuild.passes.channels.ranges import (
    Flags,
    Floats,
    Range,
    bias_of,
    channel_ranges,
    taps_of,
    windows_of,
)
from pybuild.passes.edit import Edit, used
from pybuild.records import dataclass

# kernels read words of four channels
MULTIPLE = 4
_MOST = 1 << 24  # channels of all tensors, for each of which 16 bytes are held


def drop_constant_channels(graph: Graph) -> Graph:
    """The graph without channels that say nothing; a few stay to make fours."""
    if sum(t.shape[-1] for t in graph.tensors.values() if t.shape) > _MOST:
        return graph
    ranges = channel_ranges(graph)
    made = {name for node in graph.nodes for name in node.outputs}
    if not any(ranges[name].constant.any() for name in made):
        return graph
    alike = _alike(graph, ranges)
    needed, stay = _chosen(graph, ranges, alike)
    kept = {n: np.flatnonzero(stay[i]) for n, i in alike.items() if not stay[i].all()}
    if not kept:
        return graph
    flags = {name: needed[ids] for name, ids in alike.items()}
    change = _Change(graph, Edit(graph), ranges, flags, kept)
    for node in graph.nodes:
        change.narrow(node)
    done, layers = change.edit.done(), [n for n in graph.nodes if mixes(n, graph)]
    channels = sum(int((~stay[alike[n.output]]).sum()) for n in layers)
    fewer = _constant_bytes(used(graph)) - _constant_bytes(done)
    before = graph.removed
    return replace(done, removed=(before[0] + channels, before[1] + fewer))


def _constant_bytes(graph: Graph) -> int:
    return sum(value.nbytes for value in graph.constants.values())


# ---- channels that stay or go together ------------------------------------------


def _alike(graph: Graph, ranges: Mapping[str, Range]) -> dict[str, Ints]:
    """A number for each channel of each tensor; channels that belong together have the
    same number."""
    begins: dict[str, int] = {}
    count = 0
    names = [*graph.inputs, *(n for node in graph.nodes for n in node.outputs)]
    maps = [(node, followed(node, graph)) for node in graph.nodes]
    # of constants: what is joined to channels that are computed
    names += [n for node, made in maps for n, _ in zip(node.inputs, made, strict=False)]
    for name in names:
        if name not in begins:
            begins[name], count = count, count + len(ranges[name].low)
    pairs = []
    for node, made in maps:
        for name, at in zip(node.inputs, made, strict=False):
            there = np.flatnonzero(at != ABSENT)
            pairs.append((begins[name] + at[there], begins[node.output] + there))
    numbers = _joined(count, pairs)
    return {n: numbers[b : b + len(ranges[n].low)] for n, b in begins.items()}


def _joined(count: int, pairs: list[tuple[Ints, Ints]]) -> Ints:
    """The least number of those that pairs lead to, of each."""
    numbers = np.arange(count)
    while True:
        before = numbers.copy()
        for a, b in (*pairs, *reversed(pairs)):
            least = np.minimum(numbers[a], numbers[b])
            np.minimum.at(numbers, a, least)
            np.minimum.at(numbers, b, least)
        if np.array_equal(numbers, before):
            return numbers


# ---- backward: what some reader needs -------------------------------------------


def _chosen(
    graph: Graph, ranges: Mapping[str, Range], alike: Mapping[str, Ints]
) -> tuple[Flags, Flags]:
    """For each number of channels: whether it is needed, and whether it stays."""
    computed = {n: ids for n, ids in alike.items() if n not in graph.constants}
    plain = np.ones(1 + max(int(ids.max(initial=0)) for ids in alike.values()), bool)
    for name, ids in computed.items():
        np.logical_and.at(plain, ids, ranges[name].constant)
    wanted = [
        (alike[n.output], alike[n.inputs[0]], _wanted(n, graph, ranges))
        for n in reversed(graph.nodes)
        if mixes(n, graph)
    ]
    needed = _needed(graph, alike, len(plain))
    while True:
        _spread(needed, wanted)
        stay = _stay(computed, needed, plain)
        # of what stays all that can change remains what it was
        more = stay & ~needed & ~plain
        if not more.any():
            return needed, stay
        needed |= more


def _wanted(node: Node, graph: Graph, ranges: Mapping[str, Range]) -> Flags:
    """For a layer with weights: which outputs need which inputs.

    Shapes  [outputs, inputs]
    """
    x, w = ranges[node.inputs[0]], taps_of(node, graph)
    found = np.asarray(w.any(1))
    nothing = x.low == graph.tensor(node.inputs[0]).zero_point
    others = np.flatnonzero(x.constant & ~nothing)
    kinds = windows_of(node, graph)
    # what a constant adds must be the same in all windows, also at borders
    more = np.tensordot(kinds[1:] - kinds[0], w[:, :, others], (1, 1))
    found[:, x.constant & nothing] = False
    found[:, others] = more.any(0)
    return found


def _needed(graph: Graph, alike: Mapping[str, Ints], count: int) -> Flags:
    """Flags for the numbers of channels that must stay, whatever layers with weights
    do."""
    needed = np.zeros(count, bool)
    for name in (*graph.inputs, *graph.outputs):
        if name in alike:
            needed[alike[name]] = True
    for node in graph.nodes:
        maps, mixing = followed(node, graph), mixes(node, graph)
        if not maps and not mixing:
            for name in node.outputs:
                needed[alike[name]] = True
        for index, name in enumerate(node.inputs):
            if name not in alike or (mixing and index == 0):
                continue
            # one channel for all of the output's is not a channel of its own
            alone = index >= len(maps) or bool((maps[index] == ABSENT).all())
            needed[alike[name]] |= alone
    return needed


def _spread(needed: Flags, wanted: Iterable[tuple[Ints, Ints, Flags]]) -> None:
    """Spreads needed channels backwards through layers with weights."""
    count = -1
    while count != (count := int(needed.sum())):
        for y, x, wants in wanted:
            needed[x[wants[needed[y]].any(0)]] = True


def _stay(alike: Mapping[str, Ints], needed: Flags, plain: Flags) -> Flags:
    """Numbers of channels that stay: those needed, and others, in all tensors that
    have them, so that each tensor has a multiple of four.

    plain  that are constant in all their tensors: taken first
    """
    stay = needed.copy()
    while True:
        before = stay.copy()
        for ids in alike.values():
            while (count := int(stay[ids].sum())) < len(ids):
                if count and count % MULTIPLE == 0:
                    break
                stay[ids[np.argmin(2 * stay[ids] + ~plain[ids])]] = True
        if np.array_equal(stay, before):
            return stay


# ---- the new graph --------------------------------------------------------------


@dataclass(frozen=True)
class _Change:
    """needed, kept: of each tensor; kept only of those that lose channels."""

    graph: Graph
    edit: Edit
    ranges: Mapping[str, Range]
    needed: Mapping[str, Flags]
    kept: Mapping[str, Ints]

    def narrow(self, node: Node) -> None:
        """Adds the node with fewer input or output channels; `channels`: the old ones
        to keep."""
        graph, x, y = self.graph, node.inputs[:1], node.output
        made = node
        if y in self.kept:
            tensor = graph.tensor(y)
            shape = (*tensor.shape[:-1], len(self.kept[y]))
            self.edit.tensors[y] = replace(tensor, shape=shape)
            made = node.with_attrs(channels=tuple(self.kept[y].tolist()))
        if weighted(node, graph):
            if y in self.kept or x[0] in self.kept:
                made = self._layer(made)
        elif any(name in self.kept for name in node.inputs):
            inputs = tuple(map(self._operand, node.inputs))
            made = replace(made, inputs=tuple(n for n in inputs if self._says(n)))
            if node.op == "slice":
                kept = [
                    self.kept.get(n, np.arange(graph.tensor(n).shape[-1]))
                    for n in (*x, y)
                ]
                made = resliced(made, *kept)
        self.edit.nodes.append(made)

    def _operand(self, name: str) -> str:
        """A constant without the channels that its partners lose."""
        if name not in self.kept or name not in self.graph.constants:
            return name
        value = self.graph.constants[name][..., self.kept[name]]
        return self.edit.constant(f"{name}.live", value, self.graph.tensor(name).quant)

    def _says(self, name: str) -> bool:
        """Not a part, all of constants, of which nothing is left."""
        return self.edit.tensors[name].size > 0

    def _layer(self, node: Node) -> Node:
        """A layer with weights."""
        graph, x, y = self.graph, node.inputs[0], node.output
        w = taps_of(node, graph).astype(np.float64)
        bias = bias_of(node, graph, len(w))
        if node.op != "depthwise_conv2d" and x in self.kept:
            w, bias = self._folded(node, w, bias)
            w = w[:, :, self.kept[x]]
        outputs = self.kept.get(y, np.arange(len(w)))
        spare = ~self.needed[y][outputs] if y in self.kept else np.zeros(len(w), bool)
        w = np.where(spare[:, None, None], 0, w[outputs])
        if y in self.kept:
            still = self._still(node, int(outputs[np.argmin(spare)]))
            bias = np.where(spare, still[outputs], bias[outputs])
        shape = graph.tensor(node.inputs[1]).shape
        if node.op == "depthwise_conv2d":
            values = w[:, :, 0].T.reshape(*shape[:2], len(outputs))
        else:
            values = w.reshape(len(outputs), *shape[1:-1], w.shape[2])
        return self._with_weights(node, values, bias, (outputs, spare))

    def _folded(self, node: Node, w: Floats, bias: Ints) -> tuple[Floats, Ints]:
        """Weights without, and biases with, what the channels not needed add."""
        x, needed = self.ranges[node.inputs[0]], self.needed[node.inputs[0]]
        zero = self.graph.tensor(node.inputs[0]).zero_point
        value = np.where(x.constant & ~needed, x.low - zero, 0).astype(np.float64)
        sums = (w @ value) @ windows_of(node, self.graph)[0]
        return np.where(needed, w, 0), bias + sums.astype(np.int64)

    def _still(self, node: Node, used: int) -> Ints:
        """Biases that alone, in the scale of channel `used`, make the values of all."""
        made, y = conv_parameters(node, self.graph), self.ranges[node.output]
        real = made.scales[used if len(made.scales) > 1 else 0]
        steps = (y.low - made.y_zero) / real if real else np.zeros(len(y.low))
        return np.asarray(np.clip(np.rint(steps), -(1 << 24), 1 << 24), np.int64)

    def _with_weights(
        self, node: Node, values: Floats, bias: Ints, outputs: tuple[Ints, Flags]
    ) -> Node:
        tensors = [self.graph.tensor(n) if n else None for n in (*node.inputs, "")[1:3]]
        quants = [_scales(t.quant if t else None, *outputs) for t in tensors]
        kind = self.graph.tensor(node.inputs[1]).dtype
        weights = self.edit.constant(
            f"{node.inputs[1]}.live", values.astype(kind.numpy), quants[0]
        )
        made = [node.inputs[0], weights]
        if tensors[1] is not None or bias.any():
            is_wide = self.graph.tensor(node.inputs[0]).dtype is DType.INT16
            kind = DType.INT64 if is_wide else DType.INT32
            kind, name = (tensors[1].dtype, tensors[1].name) if tensors[1] else (
                kind, weights)  # fmt: skip
            assert bool((bias == bias.astype(kind.numpy)).all()), node.name
            made.append(
                self.edit.constant(f"{name}.live", bias.astype(kind.numpy), quants[1])
            )
        return replace(node, inputs=tuple(made))


def _scales(quant: Quant | None, outputs: Ints, spare: Flags) -> Quant | None:
    """Scales of the channels that stay; those that say nothing take another's."""
    if quant is None or len(quant.scale) == 1:
        return quant
    used = int(np.argmin(spare))
    chosen: Iterable[int] = np.where(spare, outputs[used], outputs).tolist()
    scales = tuple(quant.scale[c] for c in chosen)
    return replace(quant, scale=scales, zero_point=(0,) * len(scales))
