"""Which kernels a model gets: each layer's own, or fewer that layers share.

By the estimates of prices.py; nothing is compiled, and what does not pay is left out
step by step. Knows no memory: the plan says which kernels it has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pybuild.ir.loop import Func
from pybuild.kernels.base.candidate import ROWS_BYTES, Candidate
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
    """

    kernel: str
    instructions: int
    pieces: Mapping[str, int]
    func: Func | None = None
    usable: bool = True
    tables: int = 0

    @property
    def bytes(self) -> int:
        return sum(self.pieces.values())


Options = Mapping[str, tuple[Option, ...]]


def options_of(
    offers: Mapping[str, Sequence[Candidate]], targets: Mapping[str, Target]
) -> dict[str, tuple[Option, ...]]:
    """What could compute each layer, in the order of its candidates."""
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
        return Option(name, made.instructions, pieces, func, usable, tables)

    return {
        layer: tuple(option(c, targets[layer]) for c in found)
        for layer, found in offers.items()
    }


def _table_bytes(candidate: Candidate) -> int:
    """Of what a layer's step has of its own: single rows are all described by one."""
    accesses = (*candidate.outputs, *candidate.inputs)
    rows = sum(access.rows > 1 for access in accesses)
    return 4 * (len(candidate.args) + len(candidate.constants)) + ROWS_BYTES * rows


def chosen(options: Options, optimise: str) -> dict[str, Option]:
    """What computes each layer.

    Source  greedy: from the fastest kernels on, whatever step gains most
    """
    usable = {layer: [o for o in found if o.usable] for layer, found in options.items()}
    at = {layer: min(found, key=_speed) for layer, found in usable.items()}
    fastest = sum(o.instructions for o in at.values())
    most = _MOST[optimise] * fastest

    def value(tried: Mapping[str, Option]) -> float:
        total = sum(o.instructions for o in tried.values())
        return _value(tried, fastest, optimise) if total <= most else _NEVER

    while _WORTH[optimise]:
        best = min(_steps(usable, at), key=value, default=at)
        if value(best) >= value(at):
            break
        at = best
    return at


def _value(at: Mapping[str, Option], fastest: int, optimise: str) -> float:
    """What these kernels come to: instructions, and bytes for what they are worth."""
    pieces: dict[str, int] = {}
    for option in at.values():
        pieces.update(option.pieces)
    size = sum(pieces.values())
    if optimise in _WITH_TABLES:
        size += sum(o.tables for o in at.values())
    total = sum(o.instructions for o in at.values())
    return total + _WORTH[optimise] * fastest * size


def is_better(one: Options, other: Options, optimise: str, calls: int) -> bool:
    """Whether some layers are worth more than other layers that do the same work, whose
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
    up those it has."""
    by_kernel: dict[str, dict[str, Option]] = {}
    for layer, found in usable.items():
        for option in found:
            by_kernel.setdefault(option.kernel, {})[layer] = option
    used = {option.kernel for option in at.values()}
    for kernel, mine in by_kernel.items():
        theirs = {at[layer].kernel for layer in mine} - {kernel}
        if theirs:
            yield {**at, **mine}
        for other in sorted(theirs) if len(theirs) > 1 else ():
            taken = {n: o for n, o in mine.items() if at[n].kernel == other}
            yield {**at, **taken}
        if kernel not in used:
            continue
        others = {
            layer: [o for o in usable[layer] if o.kernel in used - {kernel}]
            for layer, option in at.items()
            if option.kernel == kernel
        }
        if all(others.values()):
            yield {**at, **{n: min(o, key=_speed) for n, o in others.items()}}


@dataclass(frozen=True)
class Weighed:
    """What could compute each layer, and what counts."""

    options: Options
    optimise: str

    def best(self, fits: Mapping[str, Sequence[bool]]) -> dict[str, int]:
        """Which option each layer gets, by number, of those that fit where it is."""
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


def narrowed(
    offers: Mapping[str, Sequence[Candidate]], options: Options, optimise: str
) -> dict[str, list[Candidate]]:
    """Of each layer's candidates the one that is chosen."""
    at = chosen(options, optimise)
    return {
        layer: [
            candidate
            for candidate, option in zip(found, options[layer], strict=True)
            if option is at[layer]
        ]
        for layer, found in offers.items()
    }
