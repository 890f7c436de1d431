"""The facts that the cost model knows of a kernel's code, whatever its arguments
are."""

from __future__ import annotations

import functools

from pybuild.ir.loop import Func, Stmt
from pybuild.ir.loop_verify import changed
from pybuild.ir.relevant import deciding
from pybuild.kernels.base.candidate import Candidate
from pybuild.targets.target import Target

_MOST = 512  # kernels that are remembered


class Seen:
    """The facts that do not depend on a kernel's arguments, by `id` of pieces of its
    code.

    func      the kernel, which lives as long as this: pieces that died share their `id`
    known     of operands, at a depth of loops and while their variables change where
              they do
    names     of these variables
    assigned  by blocks; pointers: that they load from; pairs: of words in them
    """

    def __init__(self, func: Func | None = None) -> None:
        self.func = func
        self.known: dict[tuple[int, ...], tuple[float, int, float]] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.assigned: dict[int, set[str]] = {}
        self.pointers: dict[int, set[str]] = {}
        self.pairs: dict[int, int] = {}

    def changed_in(self, body: tuple[Stmt, ...]) -> set[str]:
        """Variables that get another value."""
        found = self.assigned.get(id(body))
        if found is None:
            found = self.assigned[id(body)] = changed(body)
        return found


@functools.lru_cache(_MOST)
def seen_in(func: Func, target: Target) -> Seen:
    """The walk of the first of several equal kernels, which differ only in
    arguments."""
    return Seen(func)


@functools.lru_cache(_MOST)
def _decides(func: Func) -> tuple[bool, ...]:
    names = deciding(func)
    return tuple(arg.name in names for arg in func.args)


def decisive(candidate: Candidate) -> tuple[int | None, ...]:
    """Arguments, None for those that do not change what a kernel's price is: layers
    that differ in a factor or a zero point have one."""
    assert candidate.func is not None
    return tuple(
        value if decides else None
        for value, decides in zip(candidate.args, _decides(candidate.func), strict=True)
    )
