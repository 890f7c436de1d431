"""Cross-layer equalisation: channels of an activation brought to like magnitudes.

A factor per channel goes out of the layers that make it (weights and bias / s) and into
those that read it (weights * s); what a residual connection adds up has one factor.
What is balanced is the activation, which has one scale, against input channels.
Source: Nagel et al., Data-free quantization (2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import clamp_of
from pybuild.passes.edit import Edit
from pybuild.passes.qdq import WEIGHTED
from pybuild.quantisation.ranges import Floats, Observed, magnitudes
from pybuild.quantisation.rewrite import CHANNEL_AXIS
from pybuild.quantisation.scheme import Groups
from pybuild.records import dataclass

# these keep channels apart and pass any positive factor through
_BETWEEN = ("max_pool2d", "avg_pool2d", "reshape", "mean", "copy", "add")
_FREE = ((None, None), (0.0, None))
_MOST = 64.0
# of the activation, the rest of the weights: those are fitted to the samples
_SHARE = 0.75


@dataclass(frozen=True)
class Group:
    """Tensors of which each channel can be divided by one factor.

    makers, readers  all layers that make one or read one; channels: how many
    """

    makers: tuple[Node, ...]
    tensors: tuple[str, ...]
    readers: tuple[Node, ...]
    channels: int


def equalised(graph: Graph, seen: Mapping[str, Observed]) -> Graph:
    """The graph with other weights that computes the same.

    seen  every tensor of `graph`, on the samples
    """
    edit = Edit(graph)
    edit.nodes = list(graph.nodes)
    for group in groups(graph):
        _balance(edit, group, seen)
    return edit.done()


def groups(graph: Graph) -> list[Group]:
    joined = Groups()
    for node in graph.nodes:
        for name in node.inputs if node.op in _BETWEEN else ():
            joined.join(name, node.output)
    together: dict[str, list[str]] = {}
    for name in (*graph.inputs, *(n for node in graph.nodes for n in node.outputs)):
        together.setdefault(joined.root(name), []).append(name)
    users, makers = graph.consumers(), graph.producers()
    made = [_group(names, graph, users, makers) for names in together.values()]
    return [group for group in made if group is not None]


def _group(
    names: Sequence[str],
    graph: Graph,
    users: Mapping[str, Sequence[Node]],
    makers: Mapping[str, Node],
) -> Group | None:
    if any(name in (*graph.inputs, *graph.outputs) for name in names):
        return None
    made = [makers[name] for name in names]
    read = [node for name in names for node in users[name]]
    layers = [node for node in made if node.op in WEIGHTED]
    readers = [node for node in read if node.op in WEIGHTED]
    if not layers or not readers:
        return None
    channels = graph.tensor(layers[0].output).shape[-1]
    fits = all(
        _keeps_apart(node, graph, channels)
        for node in (*made, *read)
        if node.op not in WEIGHTED
    )
    fits = fits and all(_makes(node, graph, users, channels) for node in layers)
    fits = fits and all(
        node.inputs[0] in names and _reads(node, graph, users, channels)
        for node in readers
    )
    if not fits:
        return None
    return Group(tuple(layers), tuple(names), tuple(readers), channels)


def _makes(
    node: Node, graph: Graph, users: Mapping[str, Sequence[Node]], channels: int
) -> bool:
    """A layer whose weights are its own and whose clamp passes factors through."""
    if clamp_of(node) not in _FREE or graph.tensor(node.output).shape[-1] != channels:
        return False
    return all(_own(name, graph, users) for name in node.inputs[1:] if name)


def _reads(
    node: Node, graph: Graph, users: Mapping[str, Sequence[Node]], channels: int
) -> bool:
    own = _own(node.inputs[1], graph, users)
    return own and _by_channel(node, graph) % channels == 0


def _keeps_apart(node: Node, graph: Graph, channels: int) -> bool:
    """The last axis holds the channels again, or several times in their order."""
    if node.op not in _BETWEEN:
        return False
    shape = graph.tensor(node.output).shape
    if node.op == "add":
        alike = all(graph.tensor(name).shape == shape for name in node.inputs)
        moving = not any(name in graph.constants for name in node.inputs)
        return alike and moving and clamp_of(node) in _FREE
    last = len(graph.tensor(node.inputs[0]).shape) - 1
    if clamp_of(node) != (None, None) or last in node.attrs.get("axes", ()):
        return False
    if not shape:
        return False
    many = node.op == "reshape" and shape[-1] % channels == 0
    return many or shape[-1] == channels


def _own(name: str, graph: Graph, users: Mapping[str, Sequence[Node]]) -> bool:
    """Float weights that nothing else reads."""
    if graph.tensor(name).dtype is not DType.FLOAT32:
        return False
    return graph.known(name) and len(users[name]) == 1


def _by_channel(reader: Node, graph: Graph) -> int:
    """Input channels; 1, which fits nothing, for weights that several have."""
    shape, x = graph.tensor(reader.inputs[1]).shape, graph.tensor(reader.inputs[0])
    if reader.op == "depthwise_conv2d":
        return shape[2] if shape[2] == x.shape[-1] else 1
    return shape[-1] if int(reader.attrs.get("groups", 1)) == 1 else 1


def _balance(edit: Edit, group: Group, seen: Mapping[str, Observed]) -> None:
    channels = group.channels
    peaks = [seen[name].channels.reshape(-1, channels) for name in group.tensors]
    activity = _greatest(peaks)
    factor = _factors(activity, _weight(edit, group))
    for node in group.makers:
        axis = CHANNEL_AXIS[node.op]
        made = edit.constants[node.inputs[1]].astype(np.float64)
        rows = [1] * made.ndim
        rows[axis] = -1
        _put(edit, node.inputs[1], made / factor.reshape(rows))
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = edit.constants[node.inputs[2]].astype(np.float64)
            _put(edit, node.inputs[2], bias / factor)
    for node in group.readers:
        w = edit.constants[node.inputs[1]]
        scaled = _columns(w, channels) * factor.reshape(1, 1, -1)
        _put(edit, node.inputs[1], scaled.reshape(w.shape))


def _greatest(rows: Sequence[Floats]) -> Floats:
    """The greatest value of each channel in any tensor [-1,C], as a share of the
    tensor's greatest."""
    found = [row.max(0) / max(float(row.max()), 1e-30) for row in rows]
    return np.asarray(np.max(found, axis=0))


def _weight(edit: Edit, group: Group) -> Floats | None:
    """The weight magnitude of each input channel. None if only depthwise layers read
    it, which have a scale for each channel: then the activation alone counts.
    """
    readers = [node for node in group.readers if node.op != "depthwise_conv2d"]
    if not readers:
        return None
    columns = [_columns(edit.constants[n.inputs[1]], group.channels) for n in readers]
    return _greatest([magnitudes(each, 2)[None] for each in columns])


def _columns(w: Array, channels: int) -> Floats:
    """[-1, times a channel comes, channels]: the input channel is the last axis."""
    return w.astype(np.float64).reshape(-1, 1, channels)


def _factors(activity: Floats, columns: Floats | None) -> Floats:
    """By which each channel is divided; their geometric mean is 1."""
    used = activity > 1e-12
    if columns is not None:
        used &= columns > 1e-12
    if not used.any():
        return np.ones_like(activity)
    raw = np.where(used, activity, 1.0)
    if columns is not None:
        raw = raw**_SHARE * np.where(used, columns, 1.0) ** (_SHARE - 1)
    middle = np.exp(np.log(raw[used]).mean())
    return np.where(used, np.clip(raw / middle, 1 / _MOST, _MOST), 1.0)


def _put(edit: Edit, name: str, value: Floats) -> None:
    edit.constants[name] = np.ascontiguousarray(value, np.float32)
