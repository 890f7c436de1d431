"""repeat: one kernel that iterates over the steps, and calls in each iteration the
kernels of its body as parts of its own. Tensors made in an iteration lie in scratch
unless they are outputs; values for the next iteration are copied at its end. Views are
not moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import (
    Const,
    Expr,
    Func,
    PointerType,
    Row,
    Var,
    const,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess, whole
from pybuild.kernels.operators.part import as_part
from pybuild.ops.base.repeat import HELD, LAST, Turns, Way, names_read, turns_of
from pybuild.records import dataclass

_ALIGN = 16
Offers = Callable[[Node, Graph], list[Candidate]]


@dataclass(frozen=True)
class _Place:
    """The place of a tensor: a pointer of the kernel, an offset, and the step per
    iteration, in bytes.

    base  number of the pointer; -1: scratch, which is the last pointer
    """

    base: int
    at: int = 0
    step: int = 0


def repeat(node: Node, graph: Graph, offers: Offers) -> list[Candidate]:
    """Return the candidate, made of the fastest kernels of the body that compute whole
    tensors.

    Errors  BuildError if a node of the body has none
    """
    turns = turns_of(node, graph)
    found = [_fastest(one, turns.body, offers) for one in turns.body.nodes]
    return [_Writer(node, graph, turns, found).written()]


def _fastest(node: Node, body: Graph, offers: Offers) -> Candidate | None:
    """Return the fastest kernel of a node; None if it is only a view."""
    if _view(node, body) is not None:
        return None
    able = [c for c in offers(node, body) if _is_plain(c)]
    if not able:
        raise BuildError(body.where(node), "has no kernel for a turn of a loop")
    return min(able, key=lambda c: c.cost)


def _is_plain(candidate: Candidate) -> bool:
    """Return True if a kernel takes rows one after the other, and needs nothing
    else."""
    rows = (*candidate.outputs, *candidate.inputs)
    plain = all(r.window == 1 and r.pad_row is None and r.stride < 2 for r in rows)
    moved = candidate.images == 1 or all(r.stride for r in rows)
    bound = any(one.is_bound for one in candidate.constants)
    func = candidate.func
    whole_func = isinstance(func, Func) and not func.arrays
    return whole_func and plain and moved and not bound and candidate.finish is None


def _view(node: Node, body: Graph) -> int | None:
    """Return the byte offset of an output in its input if it is a contiguous piece of
    it, else None."""
    if node.op not in ("reshape", "copy", "slice") or not node.inputs:
        return None
    x, y = body.tensor(node.inputs[0]), body.tensor(node.output)
    if x.name in body.constants or x.quant != y.quant:
        return None
    if node.op != "slice":
        return 0
    begin, strides = node.attrs["begin"], node.attrs["strides"]
    pairs = enumerate(zip(x.shape, y.shape, strict=True))
    axes = [axis for axis, (m, n) in pairs if m != n]
    if len(axes) > 1 or any(s != 1 for s in strides):
        return None
    axis = axes[0] if axes else 0
    if math.prod(x.shape[:axis]) != 1:
        return None
    return int(begin[axis]) * math.prod(x.shape[axis + 1 :]) * x.dtype.bytes


class _Writer:
    """The kernel being written; `views`: tensor -> (the tensor it is a piece of,
    bytes).

    places  the places of tensors that are not views
    """

    def __init__(
        self, node: Node, graph: Graph, turns: Turns, found: Sequence[Candidate | None]
    ) -> None:
        self.node, self.graph, self.turns, self.found = node, graph, turns, found
        self.body = turns.body
        self.names = names_read(node)
        self.views: dict[str, tuple[str, int]] = {}
        self.places: dict[str, _Place] = {}
        self.tables: list[Packed] = []
        self.bound: dict[Row, Var] = {}
        self.scratch = 0
        ways = "turn by turn: " + ", ".join(n.op for n in self.body.nodes)
        self.k = Builder("repeat", told(f"{turns.count} turns of the same steps", ways))

    def root(self, name: str) -> tuple[str, int]:
        """The tensor that a tensor is a piece of, and the offset of the piece."""
        at = 0
        while name in self.views:
            name, more = self.views[name]
            at += more
        return name, at

    def place(self, name: str) -> _Place:
        root, at = self.root(name)
        found = self.places[root]
        return replace(found, at=found.at + at)

    def written(self) -> Candidate:
        node, graph, k, turns = self.node, self.graph, self.k, self.turns
        self._bind()
        kept = self._kept()
        self._laid()
        self._begin(kept)
        with k.loop("turn", turns.count) as turn:
            for number, candidate in enumerate(self.found):
                if candidate is not None:
                    self._call(number, candidate, turn)
            self._end(kept, turn)
        cost = sum(c.cost for c in self.found if c is not None) * turns.count
        return Candidate(
            func=k.finish(in_place=True),
            args=tuple(k.values),
            outputs=tuple(whole(graph.tensor(n)) for n in node.outputs),
            inputs=tuple(whole(graph.tensor(n)) for n in self._computed()),
            constants=tuple(self.tables),
            scratch=self.scratch,
            cost=cost,
        )

    # ---- where things are ---------------------------------------------------------

    def _computed(self) -> list[str]:
        return [n for n in self.node.inputs if n not in self.graph.constants]

    def _bind(self) -> None:
        """Number the pointers: outputs, inputs, then tables: the node's, then those of
        its kernels."""
        for one, candidate in zip(self.body.nodes, self.found, strict=True):
            if candidate is None:
                bytes_in = _view(one, self.body)
                assert bytes_in is not None
                self.views[one.output] = one.inputs[0], bytes_in
        base = len(self.node.outputs)
        self.constants: dict[int, list[int]] = {}
        for inner, name, way in zip(
            self.names, self.node.inputs, self.turns.reads, strict=True
        ):
            if name in self.graph.constants:
                if way != HELD:
                    array = self.graph.constants[name]
                    at = self._table(Packed(inner, array, order="row-major"))
                    self.places[inner] = self._read(inner, at, way)
                continue
            self.places[inner] = self._read(inner, base, way)
            base += 1
        for number, candidate in enumerate(self.found):
            if candidate is not None:
                tables = [self._table(one) for one in candidate.constants]
                self.constants[number] = tables

    def _table(self, table: Packed) -> int:
        """Return the pointer of a table; tables with equal contents are shared."""
        before = len(self.node.outputs) + len(self._computed())
        for at, known in enumerate(self.tables):
            kinds = [
                (a.dtype, a.shape, a.tobytes()) for a in (known.array, table.array)
            ]
            if kinds[0] == kinds[1]:
                return before + at
        roles = {one.role for one in self.tables}
        role, count = table.role, 1
        while role in roles:
            count += 1
            role = f"{table.role}_{count}"
        self.tables.append(replace(table, role=role))
        return before + len(self.tables) - 1

    def _read(self, inner: str, base: int, way: Way) -> _Place:
        size = self.body.tensor(inner).bytes
        if isinstance(way, str):
            return _Place(base)
        return _Place(base, way[0] * size, way[1] * size)

    def _kept(self) -> list[tuple[str, _Place, str]]:
        """What the turns hand on: its name in the body, where the first turn finds it,
        and what each turn makes of it; it lies in scratch then."""
        found = []
        for index, made in self.turns.kept():
            inner = self.names[index]
            found.append((inner, self.places[inner], made))
            self.places[inner] = self._room(self.body.tensor(inner).bytes)
        return found

    def _room(self, size: int) -> _Place:
        """Reserve scratch that nothing else ever uses."""
        at = self.scratch
        self.scratch = -(-(at + size) // _ALIGN) * _ALIGN
        return _Place(-1, at)

    def _laid(self) -> None:
        """Assign places to what iterations make: outputs, or scratch while it is
        needed."""
        nodes, last = self.body.nodes, len(self.body.nodes)
        for number, way in enumerate(self.turns.makes):
            name, at = self.root(self.body.outputs[number])
            size = self.body.tensor(self.body.outputs[number]).bytes
            full = at == 0 and size == self.body.tensor(name).bytes
            if full and name not in self.places and name not in self.body.constants:
                self.places[name] = self._made(number, way, size)
        uses = {name: last for name in self.body.outputs}
        ends = {self.root(name)[0]: last for name in uses}
        for number, one in enumerate(nodes):
            for name in filter(None, one.inputs):
                root = self.root(name)[0]
                ends[root] = max(ends.get(root, 0), number)
        taken: list[tuple[int, int, int, int]] = []  # at, end, first use, last use
        top = self.scratch
        for number, (one, candidate) in enumerate(zip(nodes, self.found, strict=True)):
            if candidate is None:
                continue
            for name in one.outputs:
                if name not in self.places:
                    size = self.body.tensor(name).bytes
                    at = _gap(taken, top, size, number, ends.get(name, number))
                    self.places[name] = _Place(-1, at)
            at = _gap(taken, top, candidate.scratch, number, number)
            self.places[f"{number}.scratch"] = _Place(-1, at)
        self.scratch = max([top, *(end for _, end, _, _ in taken)])

    def _made(self, number: int, way: Way, size: int) -> _Place:
        if way == LAST or isinstance(way, str):
            return _Place(number)
        return _Place(number, way[0] * size, way[1] * size)

    # ---- code ---------------------------------------------------------------------

    def _pointer(
        self, place: _Place, kind: PointerType, more: Expr | None, turn: Expr | None
    ) -> Expr:
        """more  elements beyond it"""
        base = place.base
        if base < 0:
            base = len(self.node.outputs) + len(self._computed()) + len(self.tables)
        size = kind.elem.bytes
        assert place.at % size == 0 and place.step % size == 0, kind
        at: Expr = const(place.at // size)
        if place.step:
            assert turn is not None
            at = at + turn * (place.step // size)
        if more is not None:
            at = at + more
        own = base < len(self.node.outputs) or place.base < 0
        return offset(self._row(base, PointerType(kind.elem, own)), at)

    def _row(self, base: int, kind: PointerType) -> Expr:
        """Bind a pointer to a name before the loop."""
        found = Row(const(base), kind)
        if found not in self.bound:
            names = ["y"] * len(self.node.outputs) + ["x"] * len(self._computed())
            names += [*(table.role for table in self.tables), "work"]
            self.bound[found] = self.k.early(names[base], found)
        return self.bound[found]

    def _copied(self, source: _Place, to: _Place, tensor: Tensor, turn: Expr) -> None:
        if source == to:
            return
        k, elem = self.k, tensor.dtype
        x = k.let("from", self._pointer(source, PointerType(elem, False), None, turn))
        y = k.let("to", self._pointer(to, PointerType(elem, True), None, turn))
        with k.loop("i", tensor.bytes // elem.bytes) as i:
            k.store(y, i, load(x, i))

    def _begin(self, kept: Iterable[tuple[str, _Place, str]]) -> None:
        for inner, source, _ in kept:
            tensor = self.body.tensor(inner)
            self._copied(source, self.places[inner], tensor, const(0))

    def _end(self, kept: Iterable[tuple[str, _Place, str]], turn: Expr) -> None:
        for number, way in enumerate(self.turns.makes):
            name = self.body.outputs[number]
            tensor = self.body.tensor(name)
            made = self._made(number, way, tensor.bytes)
            self._copied(self.place(name), made, tensor, turn)
        for inner, _, name in kept:
            tensor = self.body.tensor(inner)
            self._copied(self.place(name), self.places[inner], tensor, turn)

    def _call(self, number: int, candidate: Candidate, turn: Expr) -> None:
        """Call a kernel of the body, once for each of its bands."""
        func = candidate.func
        assert isinstance(func, Func)
        places: list[tuple[_Place, RowAccess | None]] = [
            (self.place(row.tensor), row)
            for row in (*candidate.outputs, *candidate.inputs)
        ]
        places += [(_Place(at), None) for at in self.constants[number]]
        places.append((self.places[f"{number}.scratch"], None))
        rows, part = as_part(func)
        calls = candidate.images * candidate.bands
        with self.k.loop("call", calls) as call:
            args = []
            for row in rows:
                assert isinstance(row.index, Const)
                place, access = places[int(row.index.value)]
                more = None
                if access is not None and access.stride and calls > 1:
                    more = call * (access.row_bytes // row.type.elem.bytes)
                args.append(self._pointer(place, row.type, more, turn))
            values = [const(n) for n in candidate.args]
            self.k.apart(replace(part, args=(*args, *values)))


def _gap(
    taken: list[tuple[int, int, int, int]], top: int, size: int, first: int, last: int
) -> int:
    """The lowest free bytes, from `top` on, of what is used from `first` to `last`."""
    if not size:
        return top
    at = top
    for begin, end, born, dies in sorted(taken):
        if born <= last and first <= dies and begin < at + size and at < end:
            at = -(-end // _ALIGN) * _ALIGN
    taken.append((at, at + size, first, last))
    return at
