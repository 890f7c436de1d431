"""Chooses the kernels of a model: each layer's own, or fewer that layers share.

By the estimates of prices.py; nothing is compiled, and what does not pay is left out
step by step. Knows no memory: the plan says which kernels it has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pybuild.ir.graph import Node
from pybuild.ir.loop import Func
from pybuild.kernels.base.candidate import ROWS_BYTES, Candidate
from pybuild.records import dataclass
from pybuild.select.prices import price
from pybuild.targets.target import Target

_NEVER = float("inf")
# instructions of the runner for a call of a kernel, as measured
_CALL = 200
# instructions of an inference, as a share of all, that a byte of code may cost; and
# of all, times those of the fastest kernels
_WORTH = {"size": 1.0, "ram": 1 / 70_000, "balanced": 1 / 70_000, "speed": 1 / 400_000}
# whether tables count: they are small beside code that is made to be fast
_WITH_TABLES = {"size"}
_MOST = {"size": 1.485, "ram": 1.03, "balanced": 1.03, "speed": 1.002}


@dataclass(frozen=True)
class Option:
    """A kernel that could compute a layer, and what it is estimated to take.

    kernel  its name; of several kernels of that name, with a number
    pieces  bytes of its code, and of functions that other kernels call too
    func    its code; None: a task of the runtime's own
    usable  the plan for whole tensors can take it
    tables  bytes of its arguments, and of what says which rows it reads and writes
    work    its arguments, then how often it is called: layers and candidates share code
    """

    kernel: str
    instructions: int
    pieces: Mapping[str, int]
    func: Func | None = None
    usable: bool = True
    tables: int = 0
    work: tuple[int, ...] = ()

    def computes(self, candidate: Candidate) -> bool:
        """True if it is this candidate's, or that of its first step."""
        return self.func == candidate.func and self.work == _work(candidate)

    @property
    def bytes(self) -> int:
        return sum(self.pieces.values())


Options = Mapping[str, tuple[Option, ...]]


def options_of(
    offers: Mapping[str, Sequence[Candidate]], targets: Mapping[str, Target]
) -> dict[str, tuple[Option, ...]]:
    """The kernels that could compute each layer, in the order of its candidates."""
    names: dict[Func, str] = {}
    counts: Counter[str] = Counter()

    def option(candidate: Candidate, target: Target) -> Option:
        func, made = candidate.func, price(candidate, target)
        name = ""
        if func is not None:
            again = counts[func.name] + 1
            new = f"{func.name} ({again})" if again > 1 else func.name
            name = names.setdefault(func, new)
            counts[func.name] += name == new
        pieces = {name: made.kernel, **made.parts}
        usable = candidate.finish is None
        tables = _table_bytes(candidate)
        work = _work(candidate)
        return Option(name, made.instructions, pieces, func, usable, tables, work)

    def options(layer: str, found: Sequence[Candidate]) -> tuple[Option, ...]:
        made = [option(candidate, targets[layer]) for candidate in found]
        pairs = [*zip(made, found, strict=True)]
        if any(one.usable and not candidate.spare for one, candidate in pairs):
            # a last choice, where memory is short: the plan by rows takes it
            made = [replace(o, usable=o.usable and not c.spare) for o, c in pairs]
        return tuple(made)

    return {layer: options(layer, found) for layer, found in offers.items()}


def with_constants(
    options: Options, offers: Mapping[str, Sequence[Candidate]]
) -> dict[str, tuple[Option, ...]]:
    """The same, where what kernels read of flash counts as tables, too; it is packed
    for that, which takes a while."""
    return {
        layer: tuple(
            replace(option, tables=option.tables + _constant_bytes(candidate))
            for option, candidate in zip(found, offers[layer], strict=True)
        )
        for layer, found in options.items()
    }


def _constant_bytes(candidate: Candidate) -> int:
    steps = [candidate, *([candidate.finish] if candidate.finish else [])]
    packed = [one for step in steps for one in step.constants]
    return sum(one.array.nbytes for one in packed if not one.parameters)


def _work(candidate: Candidate) -> tuple[int, ...]:
    return (*candidate.args, candidate.images, candidate.bands)


def _table_bytes(candidate: Candidate) -> int:
    """The bytes of the table entries that belong to one layer's step; single rows share
    one entry."""
    accesses = (*candidate.outputs, *candidate.inputs)
    rows = sum(access.rows > 1 for access in accesses)
    return 4 * (len(candidate.args) + len(candidate.constants)) + ROWS_BYTES * rows


def estimated(
    steps: Iterable[tuple[Node, Candidate]], options: Options
) -> Iterator[int]:
    """Instructions of each layer; a kernel in two steps counts with its first, and what
    the runtime does by itself, without a result, not at all."""
    for node, candidate in steps:
        for option in options.get(next(iter(node.outputs), ""), ()):
            if option.computes(candidate):
                yield option.instructions
                break


def chosen(options: Options, optimise: str) -> dict[str, Option]:
    """The kernel that computes each layer.

    Source  greedy: from the fastest kernels on, whatever step gains most
    """
    usable = {layer: [o for o in found if o.usable] for layer, found in options.items()}
    at = _Chosen(usable, optimise)
    most = _MOST[optimise] * at.fastest
    while _WORTH[optimise]:
        worth = [
            (at.value(changed), n, changed)
            for n, changed in enumerate(_steps(usable, at.options))
            if at.instructions + at.slower(changed) <= most
        ]
        value, _, changed = min(worth, default=(_NEVER, 0, {}), key=lambda one: one[:2])
        if value >= at.value({}):
            break
        at.take(changed)
    return at.options


class _Chosen:
    """What computes each layer so far: what it comes to is counted on, so that a step
    costs as much as it changes.

    users   of each piece of code, how many layers; size: bytes of all that have some
    """

    def __init__(self, usable: Mapping[str, Sequence[Option]], optimise: str) -> None:
        self.options = {layer: min(each, key=_speed) for layer, each in usable.items()}
        self.optimise = optimise
        # a piece is as large in all layers, but for what their arguments leave out
        self.bytes: dict[str, int] = {}
        for each in usable.values():
            for option in each:
                self.bytes.update(option.pieces)
        self.users: Counter[str] = Counter()
        self.instructions = self.size = 0
        for option in self.options.values():
            self._count(option, 1)
        self.fastest = self.instructions

    def _count(self, option: Option, by: int) -> None:
        self.instructions += by * option.instructions
        self.size += by * self._tables(option)
        for name in option.pieces:
            before = self.users[name]
            self.users[name] = before + by
            if min(before, before + by) == 0:
                self.size += by * self.bytes[name]

    def _tables(self, option: Option) -> int:
        return option.tables if self.optimise in _WITH_TABLES else 0

    def slower(self, changed: Mapping[str, Option]) -> int:
        """Instructions more, where layers get these."""
        old = self.options
        return sum(o.instructions - old[n].instructions for n, o in changed.items())

    def value(self, changed: Mapping[str, Option]) -> float:
        """Instructions, and bytes for what they are worth, where layers get these."""
        more: Counter[str] = Counter()
        size = self.size
        for layer, new in changed.items():
            old = self.options[layer]
            size += self._tables(new) - self._tables(old)
            more.update(new.pieces.keys())
            more.subtract(old.pieces.keys())
        for name, by in more.items():
            before = self.users[name]
            size += self.bytes[name] * ((before + by > 0) - (before > 0))
        total = self.instructions + self.slower(changed)
        return total + _WORTH[self.optimise] * self.fastest * size

    def take(self, changed: Mapping[str, Option]) -> None:
        for layer, new in changed.items():
            self._count(self.options[layer], -1)
            self._count(new, 1)
            self.options[layer] = new


def _value(at: Mapping[str, Option], fastest: int, optimise: str) -> float:
    """The total cost of these kernels: instructions, and bytes at their worth."""
    pieces: dict[str, int] = {}
    for option in at.values():
        pieces.update(option.pieces)
    size = sum(pieces.values())
    if optimise in _WITH_TABLES:
        size += sum(o.tables for o in at.values())
    total = sum(o.instructions for o in at.values())
    return total + _WORTH[optimise] * fastest * size


def is_better(one: Options, other: Options, optimise: str, calls: int) -> bool:
    """True if some layers are worth more than other layers that do the same work, whose
    kernels are called so many times more."""
    ours, theirs = chosen(one, optimise), chosen(other, optimise)
    fastest = sum(o.instructions for o in theirs.values())
    more = _value(theirs, fastest, optimise) + _CALL * calls
    return _value(ours, fastest, optimise) < more


def _speed(option: Option) -> int:
    return option.instructions


def _steps(
    usable: Mapping[str, Sequence[Option]], at: Mapping[str, Option]
) -> Iterator[dict[str, Option]]:
    """A kernel takes all layers that it could compute, or those of one other; or gives
    up those it has. What changes: layers with their new kernels."""
    by_kernel: dict[str, dict[str, Option]] = {}
    for layer, found in usable.items():
        for option in found:
            by_kernel.setdefault(option.kernel, {})[layer] = option
    has: dict[str, list[str]] = {}
    for layer, option in at.items():
        has.setdefault(option.kernel, []).append(layer)
    for kernel, mine in by_kernel.items():
        theirs: dict[str, dict[str, Option]] = {}
        for layer, option in mine.items():
            if at[layer].kernel != kernel:
                theirs.setdefault(at[layer].kernel, {})[layer] = option
        if theirs:
            yield mine
        if len(theirs) > 1:
            yield from (theirs[other] for other in sorted(theirs))
        others = {
            layer: [o for o in usable[layer] if o.kernel in has and o.kernel != kernel]
            for layer in has.get(kernel, ())
        }
        if others and all(others.values()):
            yield {n: min(o, key=_speed) for n, o in others.items()}


@dataclass(frozen=True)
class Weighed:
    """The kernels that could compute each layer, and the weights of the costs."""

    options: Options
    optimise: str

    def best(self, fits: Mapping[str, Sequence[bool]]) -> dict[str, int]:
        """The number of each layer's best option, among those that fit."""
        tried = {
            layer: tuple(
                replace(option, usable=fit)
                for option, fit in zip(self.options[layer], able, strict=True)
            )
            for layer, able in fits.items()
        }
        at = chosen(tried, self.optimise)
        return {
            layer: next(i for i, o in enumerate(found) if o is at[layer])
            for layer, found in tried.items()
        }

    def bytes(self, works: Iterable[tuple[Node, Candidate]]) -> int:
        """The estimated bytes of flash: code once, and the tables of each layer; a
        kernel in two steps counts with its first."""
        pieces: dict[str, int] = {}
        tables = 0
        for node, candidate in works:
            for option in self.options.get(node.output, ()):
                if option.computes(candidate):
                    pieces.update(option.pieces)
                    tables += option.tables
                    break
        return tables + sum(pieces.values())


def narrowed(
    offers: Mapping[str, Sequence[Candidate]], options: Options, optimise: str
) -> dict[str, list[Candidate]]:
    """The chosen candidate of each layer, in a list of its own."""
    at = chosen(options, optimise)
    return {
        layer: [
            candidate
            for candidate, option in zip(found, options[layer], strict=True)
            if option is at[layer]
        ]
        for layer, found in offers.items()
    }
