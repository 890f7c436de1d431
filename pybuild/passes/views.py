"""Tensors that are other tensors with their axes moved: views, not yet computed.

Used by the pass `transposes`; knows no operator but transpose and reshape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pybuild.ir.graph import Node
from pybuild.passes.edit import Edit
from pybuild.records import dataclass

Perm = tuple[int, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """transpose(base, perm), then reshaped to `shape` unless that is None."""

    base: str
    perm: Perm
    shape: tuple[int, ...] | None = None

    @property
    def plain(self) -> bool:
        """The view is its base."""
        return self.shape is None and self.perm == tuple(range(len(self.perm)))


def inverse(perm: Perm) -> Perm:
    """The perm that undoes `perm`."""
    found = [0] * len(perm)
    for axis, source in enumerate(perm):
        found[source] = axis
    return tuple(found)


def composed(first: Perm, second: Perm) -> Perm:
    """The perm that is `first`, then `second`."""
    return tuple(first[axis] for axis in second)


def moves_nothing(shape: tuple[int, ...], perm: Perm) -> bool:
    """Only axes of size 1 change places: the bytes stay where they are."""
    kept = [axis for axis in perm if shape[axis] != 1]
    return kept == sorted(kept)


def regrouped(base: Shape, perm: Perm, wanted: Shape) -> tuple[Shape, Perm] | None:
    """(shape, perm) such that transpose(reshape(base, shape), perm) is
    reshape(transpose(base, perm), wanted); None where there is none.

    Axes that are joined must be neighbours in the base, in the same order.
    """
    if 0 in base:
        return None
    blocks = _blocks([base[axis] for axis in perm], wanted)
    runs = [[perm[axis] for axis in source] for source, _ in blocks]
    if any(run != list(range(run[0], run[0] + len(run))) for run in runs):
        return None
    order = sorted(range(len(blocks)), key=lambda b: runs[b][0])
    axes = [axis for b in order for axis in blocks[b][1]]
    return tuple(wanted[axis] for axis in axes), inverse(tuple(axes))


def turned(base: Shape, view: View, perm: Perm) -> View | None:
    """The view that is transpose(view, perm), of a view with a shape; None where axes
    that its base has as one would be apart.

    base  the shape of the view's base
    """
    assert view.shape is not None
    if 0 in base:
        return None
    blocks = _blocks([base[axis] for axis in view.perm], view.shape)
    of_first = {made[0]: (source, made) for source, made in blocks}
    order, at = list[int](), 0
    while at < len(perm):
        source, made = of_first.get(perm[at], ([], []))
        if not made or list(perm[at : at + len(made)]) != made:
            return None
        order += source
        at += len(made)
    shape = tuple(view.shape[axis] for axis in perm)
    return View(view.base, composed(view.perm, tuple(order)), shape)


def _blocks(source: Sequence[int], wanted: Shape) -> list[tuple[list[int], list[int]]]:
    """Neighbours among the axes that become neighbours among the wanted ones."""
    blocks: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) and j < len(wanted):
        first, second = [i], [j]
        have, want = source[i], wanted[j]
        i, j = i + 1, j + 1
        while have != want:
            if have < want:
                have, first, i = have * source[i], [*first, i], i + 1
            else:
                want, second, j = want * wanted[j], [*second, j], j + 1
        blocks.append((first, second))
    if blocks:
        blocks[-1][0].extend(range(i, len(source)))
        blocks[-1][1].extend(range(j, len(wanted)))
    return blocks


class Views:
    """Every tensor of the old graph in terms of the tensors of the new one."""

    def __init__(self, edit: Edit) -> None:
        self.edit = edit
        self._views: dict[str, View] = {}
        self._made: dict[str, str] = {}

    def of(self, name: str) -> View:
        """The view that an old tensor is; itself where nothing else is known."""
        rank = len(self.edit.tensors[name].shape)
        return self._views.get(name, View(name, tuple(range(rank))))

    def put(self, name: str, view: View) -> None:
        self._views[name] = view

    def fresh(self, text: str) -> str:
        """A name for the base of a tensor called `text`."""
        return self.edit.fresh(text if text.endswith(".nhwc") else f"{text}.nhwc")

    def read(self, name: str) -> str:
        """The tensor itself, computed from its base if need be (once)."""
        if not name:
            return name
        view = self.of(name)
        if view.plain:
            return view.base
        if name not in self._made:
            self._made[name] = self.compute(view, name)
        return self._made[name]

    def compute(self, view: View, output: str, name: str = "") -> str:
        """Emits what makes a view a tensor called `output`."""
        edit = self.edit
        base = edit.tensors[view.base]
        shape = tuple(base.shape[axis] for axis in view.perm)
        at = view.base
        name = name or output
        if not moves_nothing(base.shape, view.perm):
            last = view.shape is None
            made = output if last else edit.fresh(f"{output}.order")
            node = Node("transpose", name, (at,), (made,), {"perm": view.perm})
            at = edit.emit(node, quant=base.quant, dtype=base.dtype)
            if last:
                return at
        target = shape if view.shape is None else view.shape
        assert math.prod(target) == math.prod(shape), output
        node = Node("reshape", name, (at,), (output,))
        return edit.emit(node, shape=target, quant=base.quant, dtype=base.dtype)
