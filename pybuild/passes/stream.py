"""A model over a window that slides along an axis of its input: each run takes the new
frames and computes only the rows that they add.

Where a layer needs rows of runs before, the last ones of what it reads are state. The
bits are those of a run over the whole window, or the model is refused: rows that depend
on padding would be other rows a frame later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Node, State, Tensor, Window
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.passes.state import zeros
from pybuild.records import dataclass

OPTION = "--stream"

_POINTWISE = (*UNARY, *BINARY, "quantize", "dequantize", "copy", "map", "prelu",
              "lookup")  # fmt: skip
_WINDOWS = ("conv2d", "depthwise_conv2d", "avg_pool2d", "max_pool2d")


@dataclass(frozen=True)
class _Flow:
    """A tensor of which each run has the newest rows.

    axis    along which they come
    rows    of the whole window; fresh: new in each run
    padded  rows from the first on that depend on padding
    """

    axis: int
    rows: int
    fresh: int
    padded: int = 0


@dataclass(frozen=True)
class _Need:
    """The needs of a node: the newest rows of each input, 0 for one that is not a flow.

    flow   of its output; None: it reads the whole window
    attrs  that it has instead
    """

    rows: tuple[int, ...]
    flow: _Flow | None
    attrs: Mapping[str, object]


class _Uneven(Exception):
    """So many frames are not whole rows of a layer."""


def streamed(graph: Graph, axes: Mapping[str, tuple[int, int]]) -> Graph:
    """The graph of one run.

    axes    by input: the axis of its window, and the frames of a run; 0: the fewest
    Errors  BuildError naming every layer whose rows are not those of a frame later
    """
    if not axes:
        return graph
    if graph.state:
        raise BuildError(
            OPTION, "cannot be combined with other state", "leave out --state"
        )
    flows = {name: _flow(graph, name, *axes[name]) for name in axes}
    given = any(frames for _, frames in axes.values())
    most = 1 if given else min(flow.rows for flow in flows.values())
    for times in range(1, most + 1):
        begun = {
            name: replace(flow, fresh=flow.fresh * times)
            for name, flow in flows.items()
        }
        try:
            return _Streamer(graph, begun).done()
        except _Uneven:
            continue
    what = "frames that strides leave as no whole rows"
    raise BuildError(OPTION, what, "a multiple of all strides, or leave it out")


def _keeps(view: tuple[int, ...], x: Tensor, axis: int) -> bool:
    """True if the groups of a norm lie within a row of an axis."""
    return view[1] == 1 and math.prod(x.shape[axis + 1 :]) % math.prod(view[2:]) == 0


def _flow(graph: Graph, name: str, axis: int, frames: int) -> _Flow:
    shape = graph.tensor(name).shape
    if not -len(shape) <= axis < len(shape):
        what = f"there is no axis {axis} of '{name}' {list(shape)}"
        raise BuildError(OPTION, what, f"0 to {len(shape) - 1}")
    rows = shape[axis]
    if frames > rows:
        what = f"{frames} frames are more than the window of '{name}', {rows}"
        raise BuildError(OPTION, what)
    if frames < 0:
        raise BuildError(
            OPTION, f"{frames} frames are too few", "1 or more, or leave it out"
        )
    return _Flow(axis % len(shape), rows, frames or 1)


class _Streamer:
    def __init__(self, graph: Graph, flows: dict[str, _Flow]) -> None:
        self.graph, self.flows = graph, flows
        self.needs: dict[str, _Need] = {}
        self.most: dict[str, int] = {}  # rows that some reader of a tensor needs
        problems: list[Problem] = []
        for node in graph.nodes:
            if not any(name in flows for name in node.inputs):
                continue
            try:
                need = self._need(node)
            except BuildError as error:
                problems += error.problems
                need = _Need((0,) * len(node.inputs), None, {})
            self.needs[node.output] = need
            if need.flow is not None:
                flows[node.output] = need.flow
            for name, rows in zip(node.inputs, need.rows, strict=True):
                self.most[name] = max(self.most.get(name, 0), rows)
        if problems:
            raise BuildError.of(problems)
        self.nodes: list[Node] = []
        self.tensors = {
            name: self._of_rows(tensor, flows[name].fresh) if name in flows else tensor
            for name, tensor in graph.tensors.items()
        }
        self.state: dict[str, State] = {}
        self.joined: dict[str, str] = {}  # tensors with the rows of runs before

    # ---- what a node needs -------------------------------------------------------

    def _first(self, node: Node) -> str:
        """The first input that is a flow."""
        return next(n for n in node.inputs if n in self.flows)

    def _need(self, node: Node) -> _Need:
        """Errors  BuildError, _Uneven"""
        first, graph = self._first(node), self.graph
        flow = self.flows[first]
        axis, attrs = flow.axis, node.attrs
        match node.op:
            case op if op in _WINDOWS and axis in (1, 2):
                return self._window(node, flow)
            case "transpose":
                return self._same(node, replace(flow, axis=attrs["perm"].index(axis)))
            case "reshape":
                found = _kept_axis(graph.tensor(node.inputs[0]), axis, graph, node)
                if found >= 0:
                    return self._same(node, replace(flow, axis=found))
            case "pad":
                return self._pad(node, flow)
            case "slice" if attrs["strides"][axis] == 1:
                return self._slice(node, flow)
            case "dense" if axis == 0:
                return self._same(node, flow)
            case "mean" if axis not in attrs["axes"]:
                lost = 0 if attrs["keepdims"] else sum(a < axis for a in attrs["axes"])
                return self._same(node, replace(flow, axis=axis - lost))
            case "softmax" if axis != attrs["axis"]:
                return self._same(node, flow)
            case "norm" if axis + 1 < len(graph.tensor(first).shape):
                return self._same(node, flow)
            case "group_norm" if _keeps(attrs["view"], graph.tensor(first), axis):
                need, (outer, *rest) = self._same(node, flow), attrs["view"]
                fresh = outer * flow.fresh // flow.rows
                return replace(need, attrs={"view": (fresh, *rest)})
            case "concat" if attrs["axis"] != axis:
                if self._alike(node):
                    return self._same(node, flow)
            case op if op in _POINTWISE:
                if self._alike(node):
                    rank = len(graph.tensor(node.output).shape)
                    left = axis - len(graph.tensor(first).shape)
                    return self._same(node, replace(flow, axis=rank + left))
        return self._whole(node)

    def _alike(self, node: Node) -> bool:
        """True if all inputs have the same rows, or are the same for all rows."""
        first = self._first(node)
        flow = self.flows[first]
        left = flow.axis - len(self.graph.tensor(first).shape)
        for name in filter(None, node.inputs):
            shape, other = self.graph.tensor(name).shape, self.flows.get(name)
            if other is None:
                if node.op == "concat" or (-left <= len(shape) and shape[left] != 1):
                    return False
            elif (other.axis - len(shape), other.rows, other.fresh) != (
                left,
                flow.rows,
                flow.fresh,
            ):
                return False
        return True

    def _same(self, node: Node, flow: _Flow) -> _Need:
        """Row for row."""
        found = [self.flows[n] for n in node.inputs if n in self.flows]
        padded = max(one.padded for one in found)
        rows = tuple(self.flows[n].fresh if n in self.flows else 0 for n in node.inputs)
        return _Need(rows, replace(flow, padded=padded), {})

    def _whole(self, node: Node) -> _Need:
        found = {n: self.flows[n] for n in node.inputs if n in self.flows}
        for flow in found.values():
            if flow.padded:
                what = f"reads the whole window, in which {flow.padded} rows depend on "
                what += "padding before the first frame"
                hint = "no padding along the window, or only the newest rows"
                raise BuildError(self.graph.where(node), what, hint)
        rows = tuple(found[n].rows if n in found else 0 for n in node.inputs)
        return _Need(rows, None, {})

    def _newest(self, node: Node, flow: _Flow, first: int, end: int) -> int:
        """Rows of the input from `first` to before `end`: how many of the newest."""
        if end > flow.rows:
            what = "pads after the last frame, where the next ones will be"
            hint = "pad before the first frame (causal), or not at all"
            raise BuildError(self.graph.where(node), what, hint)
        if first < flow.padded:
            what = "needs padding even for the newest rows: the window is too short"
            raise BuildError(self.graph.where(node), what, "a longer window")
        return flow.rows - first

    def _window(self, node: Node, flow: _Flow) -> _Need:
        graph, at = self.graph, flow.axis - 1
        span = _span(node, graph, at)
        stride = int(node.attrs.get("strides", (1, 1))[at])
        pads = list(node.attrs.get("pads", (0, 0, 0, 0)))
        before = int(pads[at])
        rows = graph.tensor(node.output).shape[flow.axis]
        fresh = rows if flow.fresh == flow.rows else flow.fresh // stride
        if rows == 1 and before == 0:
            return self._whole(node)
        if flow.fresh % stride and flow.fresh < flow.rows:
            raise _Uneven
        fresh = min(fresh, rows)
        first = (rows - fresh) * stride - before
        end = (rows - 1) * stride - before + span
        needed = self._newest(node, flow, first, end)
        padded = min(rows, -(-(flow.padded + before) // stride))
        pads[at] = pads[at + 2] = 0
        found = _Flow(flow.axis, rows, fresh, padded)
        others = (0,) * (len(node.inputs) - 1)
        return _Need((needed, *others), found, {"pads": tuple(pads)})

    def _pad(self, node: Node, flow: _Flow) -> _Need:
        pads = list(node.attrs["pads"])
        before, after = pads[flow.axis]
        self._newest(node, flow, flow.rows - flow.fresh, flow.rows + after)
        pads[flow.axis] = (0, 0)
        made = replace(flow, rows=flow.rows + before, padded=flow.padded + before)
        return _Need((flow.fresh,), made, {"pads": tuple(pads)})

    def _slice(self, node: Node, flow: _Flow) -> _Need:
        begin, end = list(node.attrs["begin"]), list(node.attrs["end"])
        first, last = begin[flow.axis], end[flow.axis]
        rows = last - first
        fresh = min(flow.fresh, rows)
        needed = self._newest(node, flow, last - fresh, last)
        begin[flow.axis], end[flow.axis] = 0, fresh
        made = _Flow(flow.axis, rows, fresh, max(0, flow.padded - first))
        return _Need((needed,), made, {"begin": tuple(begin), "end": tuple(end)})

    # ---- the graph of one run ----------------------------------------------------

    def done(self) -> Graph:
        graph = self.graph
        for name in graph.inputs:
            self._keep(name)
        for node in graph.nodes:
            need = self.needs.get(node.output)
            if need is not None:
                wanted = zip(node.inputs, need.rows, strict=True)
                reads = tuple(self._tail(n, rows) for n, rows in wanted)
                node = replace(node, inputs=reads).with_attrs(**need.attrs)
            self.nodes.append(node)
            self._keep(node.output)
        windows = {
            name: Window(self.flows[name].axis, self.flows[name].rows)
            for name in (*graph.inputs, *graph.outputs)
            if name in self.flows
        }
        return replace(
            graph,
            nodes=tuple(self.nodes),
            tensors=self.tensors,
            state=self.state,
            windows=windows,
        )

    def _of_rows(self, tensor: Tensor, rows: int, name: str = "") -> Tensor:
        axis = self.flows[tensor.name].axis
        shape = (*tensor.shape[:axis], rows, *tensor.shape[axis + 1 :])
        return replace(tensor, name=name or tensor.name, shape=shape)

    def _new(self, like: str, rows: int, title: str) -> str:
        """A tensor of some rows of another."""
        name = f"{like} ({title})"
        while name in self.tensors:
            name += "'"
        self.tensors[name] = self._of_rows(self.graph.tensor(like), rows, name)
        return name

    def _keep(self, name: str) -> None:
        """Puts the rows of runs before in front of new ones, where they are read."""
        most = self.most.get(name, 0)
        if name not in self.flows or most <= self.flows[name].fresh:
            return
        flow = self.flows[name]
        kept = self._new(name, most - flow.fresh, "kept")
        joined = self._new(name, most, "joined")
        self.nodes.append(
            Node("concat", joined, (kept, name), (joined,), {"axis": flow.axis})
        )
        self.joined[name] = joined
        end = self._tail(name, most - flow.fresh)
        self.state[kept] = State(end, zeros(self.tensors[kept]))

    def _tail(self, name: str, rows: int) -> str:
        """The newest rows of a tensor."""
        if name not in self.flows:
            return name
        source = self.joined.get(name, name)
        shape, axis = self.tensors[source].shape, self.flows[name].axis
        if shape[axis] == rows:
            return source
        made = self._new(name, rows, f"last {rows}")
        begin = tuple(n - rows if i == axis else 0 for i, n in enumerate(shape))
        attrs = {"begin": begin, "end": shape, "strides": (1,) * len(shape)}
        self.nodes.append(Node("slice", made, (source,), (made,), attrs))
        return made


def _span(node: Node, graph: Graph, at: int) -> int:
    """Rows that a window reaches over."""
    if node.op in ("avg_pool2d", "max_pool2d"):
        return int(node.attrs["kernel"][at])
    shape = graph.tensor(node.inputs[1]).shape
    size = shape[1 + at] if node.op == "conv2d" else shape[at]
    return (size - 1) * int(node.attrs.get("dilations", (1, 1))[at]) + 1


def _kept_axis(x: Tensor, axis: int, graph: Graph, node: Node) -> int:
    """The axis after a reshape that does not change it; -1: there is none."""
    before, after = math.prod(x.shape[:axis]), 1
    for index, dim in enumerate(graph.tensor(node.output).shape):
        if (after, dim) == (before, x.shape[axis]):
            return index
        after *= dim
    return -1
