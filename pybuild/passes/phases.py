"""Transposed convolutions without their zeros: front ends give a convolution over rows
and columns with zeros in between; here it becomes ordinary ones, one for the outputs
that meet the same taps, woven together. Knows no file format and no kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.interpret import operator_of
from pybuild.ops.shape import pad_fill
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit
from pybuild.records import dataclass

# where a layer's weights have the axes of its window, and that of output channels
_AXES = {"conv2d": (1, 0), "depthwise_conv2d": (0, 2)}
_CHAIN = ("pad", "reshape", "slice")
_ZERO = -1  # a row that is none of the input
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
        """Where its window stands."""
        return self.first, max(len(self.taps), 1), self.gap

    def pads(self, count: int, size: int) -> tuple[int, int]:
        """Rows of zeros before and behind, for `count` windows over `size` rows; below
        zero: so many of the rows are under no window."""
        last = self.first + count - 1 + (self.place[1] - 1) * self.gap
        return -self.first, last + 1 - size


def split_phases(graph: Graph) -> Graph:
    """Convolutions of stride 1 over inputs with zeros between, as several without."""
    producers = graph.producers()
    edit = Edit(graph)
    for node in graph.nodes:
        axes = _AXES.get(node.op)
        if axes is None or not _Split(edit, node, *axes).done(producers):
            edit.keep(node)
    return remove_dead(edit.done())


def _bases(
    graph: Graph, producers: Mapping[str, Node], name: str
) -> Iterator[tuple[Tensor, tuple[Ints, Ints]]]:
    """Tensors [N,H,W,C] that a padded tensor is made of, the nearest first, and which
    of their rows and columns its own are."""
    chain: list[Node] = []
    shape = graph.tensor(name).shape
    while (node := producers.get(name)) is not None and node.op in _CHAIN:
        if node.op == "pad" and not _of_zeros(node, graph):
            return
        chain.insert(0, node)
        name = node.inputs[0]
        base = graph.tensor(name)
        same = len(base.shape) == 4 and (base.shape[0], base.shape[3]) == (
            shape[0], shape[3],
        )  # fmt: skip
        if same and any(n.op == "reshape" for n in chain):
            maps = _maps(graph, base, chain)
            if maps is not None:
                yield base, maps


def _of_zeros(pad: Node, graph: Graph) -> bool:
    x = graph.tensor(pad.inputs[0])
    return pad_fill(pad, graph) == (0 if x.quant is None else x.zero_point)


def _maps(
    graph: Graph, base: Tensor, chain: Sequence[Node]
) -> tuple[Ints, Ints] | None:
    """Of each row and column that the chain makes that of the base, or _ZERO; None
    where they do more than to move rows and columns."""
    channels, width = base.shape[3], base.shape[2]
    made: Ints = np.arange(1, base.size + 1).reshape(base.shape)
    for node in chain:
        if node.op == "pad":
            made = np.pad(made, node.attrs["pads"])
        else:
            (moved,) = operator_of(node, graph).reference(node, graph, [made])
            made = moved.astype(np.int64)
    at = (made[0, :, :, 0] - 1) // channels
    is_in = made[0, :, :, 0] > 0
    rows = np.where(is_in, at // width, _ZERO).max(1)
    columns = np.where(is_in, at % width, _ZERO).max(0)
    images, depths = np.arange(base.shape[0]), np.arange(channels)
    full = np.ravel_multi_index(
        np.ix_(images, np.maximum(rows, 0), np.maximum(columns, 0), depths), base.shape
    )
    zeros = (rows < 0)[:, None] | (columns < 0)
    wanted = np.where(zeros[None, :, :, None], 0, full + 1)
    return (rows, columns) if np.array_equal(made, wanted) else None


def _stride(rows: Ints, size: int, windows: int) -> int | None:
    """From one row of the input to the next; where it has but one, each window is a
    phase. None: rows are left out, or in another order."""
    at = np.flatnonzero(rows >= 0)
    if not len(at) or np.any(np.diff(rows[at]) != 1):
        return None
    if size == 1:
        return windows if windows <= _MOST else None
    if len(at) == 1:
        return None
    stride = int(at[1] - at[0])
    if np.any(np.diff(at) != stride):
        return None
    # rows that were cut off must be beyond what is padded
    begins = rows[at[0]] == 0 or at[0] < stride
    ends = rows[at[-1]] == size - 1 or at[-1] + stride >= len(rows)
    return stride if begins and ends else None


def _phases(
    rows: Ints, stride: int, kernel: int, dilation: int, sizes: tuple[int, int]
) -> list[_Phase]:
    """sizes  rows of the input and of the output"""
    size, count = sizes[0], -(-sizes[1] // stride)
    start = int(np.flatnonzero(rows >= 0)[0])
    begin = start - int(rows[start]) * stride
    found = []
    for phase in range(stride):
        at = [(phase + k * dilation - begin, k) for k in range(kernel)]
        met = [(n // stride, k) for n, k in at if n % stride == 0]
        gap = met[1][0] - met[0][0] if len(met) > 1 else 1
        made = _Phase(met[0][0], tuple(k for _, k in met), gap) if met else _Phase()
        before, after = made.pads(count, size)
        found.append(made if max(-before, -after) < size else _Phase())
    return found


class _Split:
    """One layer being replaced.

    window, outputs  axes of the weights: the first of the window, output channels
    """

    def __init__(self, edit: Edit, node: Node, window: int, outputs: int) -> None:
        self.edit, self.node = edit, node
        self.window, self.outputs = window, outputs
        self.y = edit.old.tensor(node.output)
        self.count = 0

    def done(self, producers: Mapping[str, Node]) -> bool:
        """Whether it was one with zeros between."""
        node, graph = self.node, self.edit.old
        given = [n for n in node.inputs[1:] if n]
        strides = tuple(node.attrs.get("strides", (1, 1)))
        if strides != (1, 1) or any(n not in graph.constants for n in given):
            return False
        best, most = None, 2
        for base, maps in _bases(graph, producers, node.inputs[0]):
            split = self._by_axes(base, maps)
            if split is not None and len(split[0]) * len(split[1]) >= most:
                best, most = (base, split), len(split[0]) * len(split[1])
        if best is None:
            return False
        self._write(*best)
        return True

    def _by_axes(
        self, base: Tensor, maps: tuple[Ints, Ints]
    ) -> tuple[list[_Phase], list[_Phase]] | None:
        """The phases of rows and of columns."""
        attrs = self.node.attrs
        pads = tuple(attrs.get("pads", (0, 0, 0, 0)))
        around = [(pads[0], pads[2]), (pads[1], pads[3])]
        both = [
            np.pad(m, pad, constant_values=_ZERO)
            for m, pad in zip(maps, around, strict=True)
        ]
        sizes = zip(both, base.shape[1:3], self.y.shape[1:3], strict=True)
        strides = [n for each in sizes if (n := _stride(*each)) is not None]
        if len(strides) < 2:
            return None
        kernel = self.edit.old.tensor(self.node.inputs[1]).shape[self.window :][:2]
        dilations = attrs.get("dilations", (1, 1))
        sides = zip(base.shape[1:3], self.y.shape[1:3], strict=True)
        numbers = zip(both, strides, kernel, dilations, sides, strict=True)
        rows, columns = (_phases(*each) for each in numbers)
        return rows, columns

    def _write(self, x: Tensor, split: tuple[list[_Phase], list[_Phase]]) -> None:
        rows, columns = split
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
    def _may_join(self) -> bool:
        """Columns of a window at one place may be channels of one layer."""
        return self.node.op == "conv2d" and self.node.attrs.get("groups", 1) == 1

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
        inputs = (name, *(self._constant(i, row, columns) for i in (1, 2)))
        inputs = inputs[: len(self.node.inputs)]
        made = self.node.with_attrs(
            pads=(top, left, bottom, right), dilations=(row.gap, first.gap)
        )
        return self._emit(replace(made, inputs=inputs), "phase", ())

    def _constant(self, index: int, row: _Phase, columns: list[_Phase]) -> str:
        """The weights or the bias of some phases."""
        name = self.node.inputs[index] if index < len(self.node.inputs) else ""
        if not name:
            return ""
        edit, axis = self.edit, 0
        value, quant = edit.constants[name], edit.tensors[name].quant
        parts = [value] * len(columns)
        if index == 1:
            axis = self.outputs
            parts = [self._taps(value, row.taps, column.taps) for column in columns]
        if quant is not None and len(quant.scale) > 1:
            times = len(columns)
            zeros = quant.zero_point * (times if len(quant.zero_point) > 1 else 1)
            quant = replace(quant, scale=quant.scale * times, zero_point=zeros)
        made = edit.constant(f"{name}.phase", np.concatenate(parts, axis), quant)
        if name in edit.parameters:
            edit.parameters[made] = edit.parameters[name]
        return made

    def _taps(
        self, value: Array, rows: tuple[int, ...], columns: tuple[int, ...]
    ) -> Array:
        """Those weights; a zero for each channel where there are none."""
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
        last = self.edit.nodes.pop()
        assert last.output == name
        del self.edit.tensors[name]
        self.edit.nodes.append(
            replace(last, name=self.node.name, outputs=self.node.outputs)
        )


def _side_by_side(columns: Sequence[_Phase], may: bool) -> list[list[_Phase]]:
    """Neighbours whose windows stand at one place, if they may be one layer."""
    if not may:
        return [[column] for column in columns]
    return [list(some) for _, some in groupby(columns, key=lambda c: c.place)]
