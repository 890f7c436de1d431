"""The lower bound of bytes for any schedule by rows, whatever its stages and orders.

Along one path through the graph, tensors beside it left out: when a layer computes its
next band, rows that were made and are still to be read are somewhere, and so is the
row that it writes. Every layer passes through every band, so that the worst of these
moments, each in its best state of all other layers, is a bound. Knows no stages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.plan.buffers.sharing import Views
from pybuild.records import dataclass

Nodes = Sequence[tuple[Node, Sequence[Candidate]]]
_FAR = float("inf")
_MOST_ROWS = 1024  # of a tensor: states are counted pairwise


@dataclass(frozen=True)
class _Layer:
    """A node, described by its kernels with the most bands; `reads`: its access to the
    previous node of the path, if by rows.

    over   whether it may overwrite its operand
    extra  bytes beside live rows while a band is computed: scratch and the row being
           written
    """

    bands: int
    made: RowAccess
    reads: RowAccess | None
    over: bool
    extra: int


def least_ram(
    graph: Graph,
    nodes: Nodes,
    views: Views,
    bound: Collection[str] = (),
    spent: Collection[str] = (),
) -> int:
    """Return the lower bound of the arena in bytes.

    nodes  in any valid order; feeds are among them if inputs arrive in rows
    bound  inputs and outputs without memory
    spent  inputs whose rows may be overwritten once they have been read
    """
    held = [n for n in graph.inputs if n not in bound]
    made = [n for n in graph.outputs if n not in bound]
    sums = [sum(graph.tensor(n).bytes for n in names) for names in (held, made)]
    before, readers = _path(nodes, views)
    end = max(range(len(nodes)), key=lambda i: before[i][0], default=-1)
    path: list[int] = []
    while end >= 0:
        path.append(end)
        end = before[end][1]
    path.reverse()
    layers = [_layer(nodes[i][1], readers.get(i)) for i in path]
    if not layers or any(layer.bands > _MOST_ROWS for layer in layers):
        return max(sums)
    first = nodes[path[0]]
    given = [a for a in _by_rows(first[1]).inputs if a.tensor in held]
    resident: Array = np.zeros(layers[0].bands + 1)
    if given:
        size, freed = graph.tensor(given[0].tensor).bytes, given[0].tensor in spent
        resident = _resident(given[0], size, layers[0], freed)
    last = nodes[path[-1]][0].output
    return max(*sums, _worst(layers, resident, last in made))


def _path(
    nodes: Nodes, views: Views
) -> tuple[list[tuple[int, int]], dict[int, RowAccess]]:
    """For each node, return (bytes on the heaviest path to it, the previous node on it
    or -1), and how the node reads that previous node's rows."""
    makers: dict[str, tuple[int, RowAccess]] = {}
    best: list[tuple[int, int]] = []
    readers: dict[int, RowAccess] = {}
    for index, (_, options) in enumerate(nodes):
        rows = _by_rows(options)
        found = (0, -1)
        for access in rows.inputs:
            root = views.of(access.tensor).root
            if root in makers and _alike(access, makers[root][1], views):
                way = (best[makers[root][0]][0], makers[root][0])
                if way > found:
                    found, readers[index] = way, access
        wrote = rows.outputs[0]
        best.append((found[0] + wrote.rows * wrote.row_bytes, found[1]))
        root = views.of(wrote.tensor).root
        if root in makers:  # of a joined tensor none is the maker
            wrote = RowAccess(wrote.tensor, 0, 0)
        makers[root] = (index, wrote)
    return best, readers


def _by_rows(options: Sequence[Candidate]) -> Candidate:
    return max(options, key=lambda c: c.bands)


def _alike(read: RowAccess, made: RowAccess, views: Views) -> bool:
    at = {views.of(read.tensor).at, views.of(made.tensor).at}
    return (read.rows, read.row_bytes) == (made.rows, made.row_bytes) and at == {0}


def _layer(options: Sequence[Candidate], reads: RowAccess | None) -> _Layer:
    rows = _by_rows(options)
    made = rows.outputs[0]
    over = any(c.in_place for c in options)
    apart = not over and made.stride > 0 and not made.ring
    row = made.window * made.row_bytes if apart else 0
    scratch = min(c.scratch for c in options)
    return _Layer(rows.bands, made, reads, over, scratch + row)


def _rows_made(layer: _Layer, bands: Array) -> Array:
    """Return the number of rows that exist after each number of bands."""
    if layer.made.stride == 0:
        return np.where(bands == layer.bands, layer.made.rows, 0)
    return np.minimum(bands * layer.made.stride, layer.made.rows)


def _between(maker: _Layer, reader: _Layer) -> tuple[Array, Array]:
    """Return arrays over [bands of the maker, bands of the reader]: bytes that are made
    and still to be read, and how many rows the reader has needed."""
    rows: Array = _rows_made(maker, np.arange(maker.bands + 1))[:, None]
    bands = np.arange(reader.bands + 1)
    read = reader.reads
    assert read is not None
    if read.stride == 0:
        over = np.where(bands == reader.bands, read.rows, 0)
        need = np.where(bands > 0, read.rows, 0)
    else:
        over = np.clip(bands * read.stride - read.pad, 0, read.rows)
        over = np.where(bands == reader.bands, read.rows, over)
        last = (bands - 1) * read.stride - read.pad + read.window
        need = np.where(bands > 0, np.clip(last, 0, read.rows), 0)
    live = np.maximum(rows - over[None, :], 0) * read.row_bytes
    return np.where(rows >= need[None, :], live, _FAR), need


def _resident(read: RowAccess, size: int, layer: _Layer, freed: bool) -> Array:
    """Return the bytes of an input that are still occupied after each number of bands
    of its first layer; freed: whether rows are free once they have been read."""
    count = np.arange(layer.bands + 1)
    left = np.where(count < layer.bands, float(size), 0.0)
    if layer.over:
        return size * (1 - count / layer.bands)
    if freed and read.stride:
        done = np.clip(count * read.stride - read.pad, 0, read.rows)
        left = np.minimum(left, size - done * (size / read.rows))
    return left


def _worst(layers: Sequence[_Layer], resident: Array, kept: bool) -> int:
    """Return the largest need over all bands of all layers, each with the other layers
    in the state that needs least.

    resident  bytes of the input, by bands of the first layer
    kept      whether the last tensor is an output and stays in memory
    """
    pairs = [_between(a, b) for a, b in pairwise(layers)]
    before: list[Any] = [resident]
    for live, _ in pairs:
        before.append((live + before[-1][:, None]).min(axis=0))
    end = layers[-1]
    rows = _rows_made(end, np.arange(end.bands + 1)) * end.made.row_bytes
    after: list[Any] = [rows if kept else np.zeros_like(rows)]
    for live, _ in reversed(pairs):
        after.append((live + after[-1][None, :]).min(axis=1))
    after.reverse()
    worst = 0.0
    for index, layer in enumerate(layers):
        held = before[index][:-1]
        if index:  # rows of the next band are there, and those of bands before
            live, need = pairs[index - 1]
            maker = layers[index - 1]
            there: Array = _rows_made(maker, np.arange(maker.bands + 1))[:, None]
            enough = np.greater_equal(there, need[None, 1:])
            ready = np.where(enough, live[:, :-1], _FAR)
            held = (ready + before[index - 1][:, None]).min(axis=0)
        worst = max(worst, float((held + after[index][:-1]).max()) + layer.extra)
    return int(worst)
