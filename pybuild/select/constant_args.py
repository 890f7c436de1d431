"""Makes constants of the arguments that all layers of one kernel pass alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pybuild.ir.loop import Expr, Func, Part, Var
from pybuild.ir.loop_verify import statements
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.external import External
from pybuild.kernels.base.specialise import with_constants


def with_constant_args(
    candidates: Iterable[Candidate], share_parts: bool = True
) -> list[Candidate]:
    """The same work by kernels that take only what differs.

    share_parts  a part that several kernels call stays one: what these give it alike
                 becomes a constant of it; else each kernel has its own
    """
    chosen = list(candidates)
    users: dict[Func, list[tuple[int, ...]]] = defaultdict(list)
    for candidate in chosen:
        if candidate.func is not None and not isinstance(candidate.func, External):
            users[candidate.func] += [candidate.args, *candidate.slices]
    alike = {
        func: {
            i: each[0]
            for i, each in enumerate(zip(*calls, strict=True))
            if len({*each}) == 1
        }
        for func, calls in users.items()
    }
    differing = _differing(alike) if share_parts else {}
    made = {
        func: with_constants(func, values, lambda part: differing.get(part.name, ()))
        for func, values in alike.items()
    }
    return [_taking(c, made) for c in chosen]


def _differing(alike: Mapping[Func, Mapping[int, int]]) -> dict[str, set[Var]]:
    """For each part, by its name: the parameters that get different arguments."""
    given: dict[tuple[str, Var], set[Expr]] = defaultdict(set)
    for func, values in alike.items():
        whole = with_constants(func, values, lambda part: part.params)
        for part in statements(whole.body):
            if isinstance(part, Part):
                for param, arg in zip(part.params, part.args, strict=True):
                    given[part.name, param].add(arg)
    found: dict[str, set[Var]] = defaultdict(set)
    for (name, param), taken in given.items():
        if len(taken) > 1:
            found[name].add(param)
    return found


def _taking(candidate: Candidate, made: Mapping[Func, Func]) -> Candidate:
    if candidate.func is None or candidate.func not in made:
        return candidate
    func, given = made[candidate.func], candidate.func.args

    def taken(args: tuple[int, ...]) -> tuple[int, ...]:
        pairs = zip(given, args, strict=True)
        return tuple(n for arg, n in pairs if arg in func.args)

    slices = tuple(map(taken, candidate.slices))
    return replace(candidate, func=func, args=taken(candidate.args), slices=slices)
