"""Channels whose int8 value never changes: folded into the next bias, then dropped.

Ranges go forward through the graph, by channel; what some reader needs goes back.
Every output of the model stays bit for bit what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import DType
from pybuild.graph import Graph, Node, Quant, Tensor
from pybuild.ops.conv import conv_parameters
from pybuild.ops.interpret import operator_of
from pybuild.ops.quant import requantize
from pybuild.passes.edit import Edit

# channel c of the output depends on channel c of the inputs alone, and rises with it
_CHANNELWISE = (
    "add",
    "avg_pool2d",
    "depthwise_conv2d",
    "max_pool2d",
    "mean",
    "reshape",
)
_MIXING = ("conv2d", "dense")
# kernels read words of four channels
MULTIPLE = 4
_INT32 = 1 << 31

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Range:
    """Least and greatest value of each channel of a tensor."""

    low: Ints
    high: Ints

    @property
    def constant(self) -> Flags:
        return np.asarray(self.low == self.high)


def drop_constant_channels(graph: Graph) -> Graph:
    """The graph without channels that say nothing; a few stay to make fours."""
    ranges = _ranges(graph)
    if not any(r.constant.any() for r in ranges.values()):
        return graph
    needed = _needed(graph, ranges)
    kept = {n: _rounded(flags) for n, flags in needed.items() if not flags.all()}
    kept = {n: k for n, k in kept.items() if len(k) < len(needed[n])}
    if not kept:
        return graph
    edit = Edit(graph)
    for node in graph.nodes:
        edit.nodes.append(_narrowed(node, graph, edit, ranges, needed, kept))
    return edit.done()


def _rounded(needed: Flags) -> Ints:
    """The channels that stay: those needed, and others up to a multiple."""
    keep = needed.copy()
    spare = np.flatnonzero(~needed)
    count = max(int(needed.sum()), 1)
    keep[spare[: -count % MULTIPLE if needed.any() else MULTIPLE]] = True
    return np.flatnonzero(keep)


# ---- forward: what each channel can be ------------------------------------------


def _ranges(graph: Graph) -> dict[str, Range]:
    ranges: dict[str, Range] = {}
    for name in graph.inputs:
        ranges[name] = _everything(graph.tensor(name))
    for node in graph.nodes:
        for name in node.outputs:
            ranges[name] = _everything(graph.tensor(name))
        if _integer(node, graph):
            found = _of_node(node, graph, ranges)
            if found is not None:
                ranges[node.output] = found
    return ranges


def _everything(tensor: Tensor) -> Range:
    count = tensor.shape[-1] if tensor.shape else 1
    # of other types nothing is concluded: two values that are never alike
    low, high = (-128, 127) if tensor.dtype is DType.INT8 else (0, 1)
    return Range(np.full(count, low), np.full(count, high))


def _integer(node: Node, graph: Graph) -> bool:
    """All computed tensors are int8 and have channels last."""
    names = [n for n in (*node.inputs, *node.outputs) if n and not _fixed(n, graph)]
    return all(
        graph.tensor(n).dtype is DType.INT8 and graph.tensor(n).shape for n in names
    )


def _fixed(name: str, graph: Graph) -> bool:
    return name in graph.constants


def _of_node(node: Node, graph: Graph, ranges: Mapping[str, Range]) -> Range | None:
    if _weighted(node, graph):
        return _of_weights(node, graph, ranges[node.inputs[0]])
    if node.op == "depthwise_conv2d" or not _channelwise(node, graph):
        return None
    ends = []
    for side in ("low", "high"):
        values = [
            np.broadcast_to(getattr(ranges[n], side), graph.tensor(n).shape)
            for n in node.inputs
        ]
        arrays = [v.astype(np.int8) for v in values]
        (made,) = operator_of(node, graph).reference(node, graph, arrays)
        ends.append(made.reshape(-1, made.shape[-1]).astype(np.int64))
    return Range(ends[0].min(0), ends[1].max(0))


def _weighted(node: Node, graph: Graph) -> bool:
    """A layer with weights whose values are known, and one group of channels."""
    if node.op not in (*_MIXING, "depthwise_conv2d"):
        return False
    if node.attrs.get("groups", 1) != 1 or node.attrs.get("rounding") == "even":
        return False
    weights = graph.tensor(node.inputs[1])
    channels = graph.tensor(node.inputs[0]).shape[-1:]
    if node.op != "conv2d" and weights.shape[-1:] != channels:
        return False
    fixed = [n for n in node.inputs[1:] if n]
    return weights.dtype is DType.INT8 and all(graph.known(n) for n in fixed)


def _channelwise(node: Node, graph: Graph) -> bool:
    if node.op not in _CHANNELWISE:
        return False
    if node.op == "depthwise_conv2d":
        return _weighted(node, graph)
    y = graph.tensor(node.output)
    shapes = [graph.tensor(n).shape for n in node.inputs]
    if (
        any(_fixed(n, graph) for n in node.inputs)
        or node.attrs.get("rounding") == "even"
    ):
        return False
    match node.op:
        case "add":
            return all(shape == y.shape for shape in shapes)
        case "mean":
            return len(shapes[0]) - 1 not in node.attrs["axes"]
    return shapes[0][-1:] == y.shape[-1:]


def _joins(node: Node, graph: Graph) -> bool:
    """Its tensors keep and lose channels together."""
    return _channelwise(node, graph) and _integer(node, graph)


def _mixes(node: Node, graph: Graph) -> bool:
    """It may lose channels of its input and of its output, each for themselves."""
    return node.op in _MIXING and _weighted(node, graph) and _integer(node, graph)


def _taps(node: Node, graph: Graph) -> Ints:
    """Weights [outputs, taps, inputs]; of a depthwise layer [channels, taps, 1]."""
    w = graph.constants[node.inputs[1]].astype(np.int64)
    if node.op == "depthwise_conv2d":
        return w.reshape(-1, w.shape[2]).T[:, :, None]
    return w.reshape(w.shape[0], -1, w.shape[-1])


def _bias(node: Node, graph: Graph, outputs: int) -> Ints:
    if len(node.inputs) > 2 and node.inputs[2]:
        return graph.constants[node.inputs[2]].astype(np.int64)
    return np.zeros(outputs, np.int64)


def _of_weights(node: Node, graph: Graph, x: Range) -> Range:
    made, w = conv_parameters(node, graph), _taps(node, graph)
    low, high = x.low - made.x_zero, x.high - made.x_zero
    if any(node.attrs.get("pads", (0,))):
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    if node.op == "depthwise_conv2d":
        low, high = low[:, None, None], high[:, None, None]
    bias = _bias(node, graph, len(w))
    ends = []
    for pick in (np.minimum, np.maximum):
        acc = bias + pick(w * low, w * high).sum((1, 2))
        scaled = requantize(acc, made.multipliers, made.shifts, made.rounding)
        ends.append(np.clip(scaled + made.y_zero, made.low, made.high))
    return Range(ends[0], ends[1])


# ---- backward: what some reader needs -------------------------------------------


def _needed(graph: Graph, ranges: Mapping[str, Range]) -> dict[str, Flags]:
    """Channels that must stay, alike in all tensors that share their channels."""
    groups = _groups(graph)
    needed: dict[str, Flags] = {}
    for name, root in groups.items():
        count = len(ranges[name].low)
        needed.setdefault(root, np.zeros(count, bool))
    for name in (*graph.inputs, *graph.outputs):
        needed[groups[name]][:] = True
    makers = graph.producers()
    for name, root in groups.items():
        node = makers.get(name)
        if node is not None and not _mixes(node, graph) and not _joins(node, graph):
            needed[root][:] = True
    for node in graph.nodes:
        for name in (n for n in node.inputs if n in groups):
            if not _joins(node, graph):
                needed[groups[name]] |= _read(node, graph, ranges, name)
    return {name: needed[root] for name, root in groups.items()}


def _read(
    node: Node, graph: Graph, ranges: Mapping[str, Range], name: str
) -> Flags | bool:
    """The channels of an input that a node cannot do without."""
    if not _mixes(node, graph) or name != node.inputs[0]:
        return True
    made, x = conv_parameters(node, graph), ranges[name]
    folds = x.constant
    if any(node.attrs.get("pads", (0,))):
        folds = folds & (x.low == made.x_zero)
    return np.asarray(~folds & _taps(node, graph).any((0, 1)))


def _groups(graph: Graph) -> dict[str, str]:
    """Tensor -> the first of those that keep and lose channels together."""
    groups = {name: name for name in graph.inputs}
    for node in graph.nodes:
        for name in node.outputs:
            groups[name] = name
        if _joins(node, graph):
            computed = [n for n in node.inputs if n in groups]
            roots = [groups[n] for n in (*computed, node.output)]
            for name, root in groups.items():
                if root in roots:
                    groups[name] = roots[0]
    return groups


# ---- the new graph --------------------------------------------------------------


def _narrowed(
    node: Node,
    graph: Graph,
    edit: Edit,
    ranges: Mapping[str, Range],
    needed: Mapping[str, Flags],
    kept: Mapping[str, Ints],
) -> Node:
    """The node with fewer channels in or out; `channels`: which of the old ones."""
    x_name, y_name = node.inputs[0], node.output
    made = node
    if y_name in kept:
        tensor = graph.tensor(y_name)
        shape = (*tensor.shape[:-1], len(kept[y_name]))
        edit.tensors[y_name] = replace(tensor, shape=shape)
        made = node.with_attrs(channels=tuple(kept[y_name].tolist()))
    if not _weighted(node, graph) or not (x_name in kept or y_name in kept):
        return made
    w = _taps(node, graph)
    bias = _bias(node, graph, len(w))
    if node.op in _MIXING and x_name in kept:
        w, bias = _folded(node, graph, ranges[x_name], needed[x_name], w, bias)
        w = w[:, :, kept[x_name]]
    outputs = kept.get(y_name, np.arange(len(w)))
    spare = ~needed[y_name][outputs] if y_name in kept else np.zeros(len(w), bool)
    w = np.where(spare[:, None, None], 0, w[outputs])
    bias = np.where(spare, _still(node, graph, ranges[y_name], needed[y_name])[outputs],
                    bias[outputs])  # fmt: skip
    shape = graph.tensor(node.inputs[1]).shape
    if node.op == "depthwise_conv2d":
        values = w[:, :, 0].T.reshape(*shape[:2], len(outputs))
    else:
        values = w.reshape(len(outputs), *shape[1:-1], w.shape[2])
    return _with_weights(made, graph, edit, values, bias, (outputs, spare))


def _still(node: Node, graph: Graph, y: Range, needed: Flags) -> Ints:
    """Biases that alone, in a needed channel's scale, make the values of others."""
    made, used = conv_parameters(node, graph), int(np.argmax(needed))
    one = used if len(made.multipliers) > 1 else 0
    real = made.multipliers[one] * 2.0 ** (made.shifts[one] - 31)
    steps = (y.low - made.y_zero) / real if real else np.zeros(len(y.low))
    return np.asarray(np.clip(np.rint(steps), -(1 << 24), 1 << 24), np.int64)


def _folded(
    node: Node, graph: Graph, x: Range, needed: Flags, w: Ints, bias: Ints
) -> tuple[Ints, Ints]:
    """Weights without, and biases with, what the channels not needed add."""
    zero = conv_parameters(node, graph).x_zero
    value = np.where(x.constant & ~needed, x.low - zero, 0)
    return np.where(needed, w, 0), bias + (w * value).sum((1, 2))


def _with_weights(
    node: Node,
    graph: Graph,
    edit: Edit,
    values: Ints,
    bias: Ints,
    outputs: tuple[Ints, Flags],
) -> Node:
    assert bool((np.abs(bias) < _INT32).all()), node.name
    quants = [graph.tensor(n).quant if n else None for n in (*node.inputs, "")[1:3]]
    quants = [_scales(q, *outputs) for q in quants]
    weights = edit.constant(f"{node.inputs[1]}.live", values.astype(np.int8), quants[0])
    made = [node.inputs[0], weights]
    if (len(node.inputs) > 2 and node.inputs[2]) or bias.any():
        text = node.inputs[2] if len(node.inputs) > 2 and node.inputs[2] else weights
        made.append(edit.constant(f"{text}.live", bias.astype(np.int32), quants[1]))
    return replace(node, inputs=tuple(made))


def _scales(quant: Quant | None, outputs: Ints, spare: Flags) -> Quant | None:
    """Scales of the channels that stay; those that say nothing take another's."""
    if quant is None or len(quant.scale) == 1:
        return quant
    used = int(np.argmin(spare))
    chosen: Iterable[int] = np.where(spare, outputs[used], outputs).tolist()
    scales = tuple(quant.scale[c] for c in chosen)
    return replace(quant, scale=scales, zero_point=(0,) * len(scales))
