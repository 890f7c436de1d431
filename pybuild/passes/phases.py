"""Transposed convolutions as ordinary ones: one for the outputs that meet the same
taps, woven together.

Front ends give a convolution with `input_dilations`, over an input with zeros between
its rows and columns; the ordinary ones read none of those. Knows no file format and no
kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Attr, Graph, Node, Tensor
from pybuild.ops.base.conv_types import INPUT_DILATIONS
from pybuild.ops.base.operator import invalid
from pybuild.ops.hybrid import SCALE, ZERO, ZERO_OF_SUMS
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit, only_reader
from pybuild.records import dataclass

# where a layer's weights have the axes of its window, and that of output channels
_AXES = {"conv2d": (1, 0), "conv2d_sums": (1, 0), "depthwise_conv2d": (0, 2)}
_MOST = 8  # phases of an input of one row


@dataclass(frozen=True)
class _Phase:
    """The outputs o with o % stride the same number, along one axis.

    first  row of the input under the first tap, of the first of them
    taps   of the whole window, those that meet rows; none: nothing does
    gap    rows from a tap to the next
    """

    first: int = 0
    taps: tuple[int, ...] = ()
    gap: int = 1

    @property
    def place(self) -> tuple[int, int, int]:
        """The position of its window."""
        return self.first, max(len(self.taps), 1), self.gap

    def pads(self, count: int, size: int) -> tuple[int, int]:
        """Rows of zeros before and behind, for `count` windows over `size` rows; below
        zero: so many of the rows are under no window."""
        last = self.first + count - 1 + (self.place[1] - 1) * self.gap
        return -self.first, last + 1 - size


def split_phases(graph: Graph) -> Graph:
    """Transposed convolutions as ordinary ones.

    Errors  BuildError for one whose weights are computed, and for integer sums that
            something else than one scale_sums reads
    """
    edit, users = Edit(graph), graph.consumers()
    done = set[str]()
    for node in graph.nodes:
        if node.output in done:
            continue
        if INPUT_DILATIONS not in node.attrs:
            edit.keep(node)
            continue
        behind = []
        if node.op == "conv2d_sums":
            behind = _scaling(graph, node, users)
            done.update(one.output for one in behind)
        _Split(edit, node, behind[-1] if behind else None).write()
    return remove_dead(edit.done())


def _scaling(
    graph: Graph, node: Node, users: Mapping[str, Sequence[Node]]
) -> list[Node]:
    """The scale_sums of integer sums, as each phase has totals of its own weights, with
    a reshape before it."""
    found = [node]
    while found[-1].op in ("conv2d_sums", "reshape") and only_reader(
        graph, users, found[-1].output
    ):
        found += users[found[-1].output]
    if found[-1].op != "scale_sums" or len(found[-1].inputs) > ZERO:
        what = "the sums of a transposed convolution are for one scale_sums alone"
        raise invalid(node, graph, what)
    return found[1:]


def refuse_transposed(graph: Graph) -> Graph:
    """The graph, if no convolution of it is transposed: kernels are of ordinary ones.

    Errors  BuildError that names each
    """
    what = "a transposed convolution is several nodes, which have no storage or device"
    hint = "leave storage and devices out"
    found = [n for n in graph.nodes if INPUT_DILATIONS in n.attrs]
    if found:
        problems = [p for n in found for p in invalid(n, graph, what, hint).problems]
        raise BuildError.of(problems)
    return graph


def _phases(
    begin: int, stride: int, taps: tuple[int, int], sizes: tuple[int, int]
) -> list[_Phase]:
    """The phases of one axis.

    begin  rows of zeros before the first of the input
    taps   how many, and rows from one to the next, in rows with zeros between
    sizes  rows of the input and of the output
    """
    size, windows = sizes
    lone = size == 1 and stride > 1 and windows <= _MOST
    if lone:  # each window meets it, or not
        stride = windows
    kernel, dilation = taps
    found = []
    for phase in range(stride):
        at = [(phase + k * dilation - begin, k) for k in range(kernel)]
        met = [(n // stride, k) for n, k in at if n % stride == 0]
        met = [(row, k) for row, k in met if not lone or row == 0]
        gap = met[1][0] - met[0][0] if len(met) > 1 else 1
        made = _Phase(met[0][0], tuple(k for _, k in met), gap) if met else _Phase()
        before, after = made.pads(-(-windows // stride), size)
        found.append(made if max(-before, -after) < size else _Phase())
    return found


class _Split:
    """One layer being replaced, with the scale_sums of its integer sums.

    window, outputs  axes of the weights: the first of the window, output channels
    """

    def __init__(self, edit: Edit, node: Node, end: Node | None) -> None:
        self.edit, self.node, self.end = edit, node, end
        self.window, self.outputs = _AXES[node.op]
        self.last = end or node
        shape = edit.old.tensor(node.output).shape
        self.y = replace(edit.old.tensor(self.last.output), shape=shape)
        self.count = 0

    def write(self) -> None:
        """Its phases, and what weaves them together."""
        node, graph = self.node, self.edit.old
        if any(name and name not in graph.constants for name in self._tables):
            what = "the weights of a transposed convolution are computed"
            raise invalid(node, graph, what, "give constant ones")
        self._write(graph.tensor(node.inputs[0]), *self._by_axes())

    def _by_axes(self) -> list[list[_Phase]]:
        """The phases of rows and of columns."""
        attrs, graph = self.node.attrs, self.edit.old
        x, w = (graph.tensor(name) for name in self.node.inputs[:2])
        taps = zip(w.shape[self.window :], attrs.get("dilations", (1, 1)), strict=False)
        sizes = zip(x.shape[1:3], self.y.shape[1:3], strict=True)
        begins = attrs.get("pads", (0, 0, 0, 0))[:2]
        axes = zip(begins, attrs[INPUT_DILATIONS], taps, sizes, strict=True)
        return [_phases(*axis) for axis in axes]

    def _write(self, x: Tensor, rows: list[_Phase], columns: list[_Phase]) -> None:
        _, high, wide, channels = self.y.shape
        # windows of each phase; of some phases the last is not wanted
        down, across = -(-high // len(rows)), -(-wide // len(columns))
        bands = []
        for row in rows:
            parts = [
                self._layer(x, row, some, (down, across))
                for some in _side_by_side(columns, self._may_join)
            ]
            band = self._joined(parts, 3)
            full = across * len(columns)
            band = self._shaped(band, (down, full, channels))
            band = self._cut(band, 2, wide)
            bands.append(self._shaped(band, (down, 1, wide * channels)))
        whole = self._joined(bands, 2)
        whole = self._shaped(whole, (down * len(rows), wide, channels))
        self._named(self._cut(whole, 1, high))

    @property
    def _tables(self) -> tuple[str, ...]:
        """The weights, and the bias of a layer that has one."""
        inputs = self.node.inputs
        return inputs[1:2] if self.end is not None else inputs[1:]

    @property
    def _may_join(self) -> bool:
        """Columns of a window at one place may be channels of one layer."""
        is_conv = not self.node.op.startswith("depthwise")
        return is_conv and self.node.attrs.get("groups", 1) == 1

    def _layer(
        self, x: Tensor, row: _Phase, columns: list[_Phase], counts: tuple[int, int]
    ) -> str:
        """The layer of a phase of rows and of phases of columns with windows at one
        place: they are its channels, one phase after the other."""
        first = columns[0]
        pads, name = [], x.name
        for axis, (phase, count) in enumerate(
            zip((row, first), counts, strict=True), 1
        ):
            before, after = phase.pads(count, x.shape[axis])
            pads.append((max(before, 0), max(after, 0)))
            size = x.shape[axis]
            name = self._cut(name, axis, size + min(after, 0), max(-before, 0))
        (top, bottom), (left, right) = pads
        weights, *others = self._tables
        value = self.edit.constants[weights]
        parts = [self._taps(value, row.taps, column.taps) for column in columns]
        w = self._constant(weights, parts, self.outputs)
        times = len(columns)
        inputs = (name, w, *(self._repeated(other, times) for other in others))
        made = self.node.with_attrs(
            pads=(top, left, bottom, right), dilations=(row.gap, first.gap)
        )
        made = replace(made, attrs=_without_zeros(made.attrs))
        sums = self._emit(replace(made, inputs=inputs), "phase", ())
        return sums if self.end is None else self._scaled(self.end, sums, w, times)

    def _scaled(self, end: Node, sums: str, w: str, times: int) -> str:
        """The integer sums of a layer as real numbers."""
        edit = self.edit
        scale, factor, *bias = (edit.name(n) if n else n for n in end.inputs[SCALE:])
        if edit.constants[factor].size > 1:
            factor = self._repeated(factor, times)
        names = [sums, scale, factor, *(self._repeated(n, times) for n in bias)]
        for zero in self.node.inputs[ZERO_OF_SUMS:]:
            names += [""] * (ZERO - len(names)) + [edit.name(zero), w]
        return self._emit(replace(end, inputs=tuple(names)), "real", ())

    def _repeated(self, name: str, times: int) -> str:
        """A number for each output channel of some phases; "" if there is none."""
        if not name:
            return name
        return self._constant(name, [self.edit.constants[name]] * times, 0)

    def _constant(self, name: str, parts: Sequence[Array], axis: int) -> str:
        """The weights or the bias of some phases."""
        edit = self.edit
        quant = edit.tensors[name].quant
        if quant is not None and len(quant.scale) > 1:
            times = len(parts)
            zeros = quant.zero_point * (times if len(quant.zero_point) > 1 else 1)
            quant = replace(quant, scale=quant.scale * times, zero_point=zeros)
        made = edit.constant(f"{name}.phase", np.concatenate(parts, axis), quant)
        if name in edit.parameters:
            edit.parameters[made] = edit.parameters[name]
        return made

    def _taps(
        self, value: Array, rows: tuple[int, ...], columns: tuple[int, ...]
    ) -> Array:
        """The weights of these taps; zeros if there are none."""
        for axis, taps in enumerate((rows, columns), self.window):
            some = value.take(taps or (0,), axis)
            value = some if taps else np.zeros_like(some)
        return value

    def _emit(self, node: Node, what: str, shape: tuple[int, ...]) -> str:
        """Adds a node that makes a tensor like the output, or like what it is cut from;
        of a reshape its shape."""
        self.count += 1
        output = self.edit.fresh(f"{self.node.output}.{what}")
        name = f"{self.node.name}.{what}{self.count}"
        made = replace(node, name=name, outputs=(output,), device=self.node.device)
        y = self.edit.tensors[node.inputs[0]] if node.op == "slice" else self.y
        return self.edit.emit(made, shape=shape, quant=y.quant, dtype=y.dtype)

    def _joined(self, names: Sequence[str], axis: int) -> str:
        if len(names) == 1:
            return names[0]
        return self._emit(Node("concat", "", tuple(names), (), {"axis": axis}), "c", ())

    def _shaped(self, name: str, shape: tuple[int, ...]) -> str:
        full = (self.y.shape[0], *shape)
        if self.edit.tensors[name].shape == full:
            return name
        return self._emit(Node("reshape", "", (name,), ()), "rows", full)

    def _cut(self, name: str, axis: int, end: int, begin: int = 0) -> str:
        """Rows [begin, end) of an axis."""
        tensor = self.edit.tensors[name]
        if (begin, end) == (0, tensor.shape[axis]):
            return name
        ends = tuple(end if i == axis else n for i, n in enumerate(tensor.shape))
        begins = tuple(begin if i == axis else 0 for i in range(4))
        attrs = {"begin": begins, "end": ends, "strides": (1,) * 4}
        return self._emit(Node("slice", "", (name,), (), attrs), "part", ())

    def _named(self, name: str) -> None:
        """The last node makes the layer's output."""
        shape = self.edit.old.tensor(self.last.output).shape
        if shape != self.y.shape:
            name = self._emit(Node("reshape", "", (name,), ()), "rows", shape)
        last = self.edit.nodes.pop()
        assert last.output == name
        del self.edit.tensors[name]
        self.edit.nodes.append(
            replace(last, name=self.last.name, outputs=self.last.outputs)
        )


def _without_zeros(attrs: Mapping[str, Attr]) -> dict[str, Attr]:
    return {key: value for key, value in attrs.items() if key != INPUT_DILATIONS}


def _side_by_side(columns: Sequence[_Phase], may: bool) -> list[list[_Phase]]:
    """Neighbours whose windows stand at one place, if they may be one layer."""
    if not may:
        return [[column] for column in columns]
    return [list(some) for _, some in groupby(columns, key=lambda c: c.place)]
