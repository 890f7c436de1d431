"""Which of many kernels a C compiler with sanitizers gets: all take it minutes, where
LLVM takes seconds. `--all` gives it all of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeVar

import pytest

from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import intrins
from tests.kernels.kernel_bench import Job

One = TypeVar("One", Job, tuple[str, Job])
Kind: TypeAlias = tuple[str, ...]


def of_each_kind(jobs: Sequence[One]) -> list[One]:
    """Jobs of few kernels: each part of a kernel's name, each two words that are in one
    name and each instruction that crt spells is in one of them."""
    funcs = [_func(one) for one in jobs]
    kinds = {func: _kinds(func) for func in funcs}
    left = set().union(*kinds.values())
    taken: set[Func] = set()
    while left:
        best = max(kinds, key=lambda func: len(kinds[func] & left))
        taken.add(best)
        left -= kinds[best]
    return [one for one, func in zip(jobs, funcs, strict=True) if func in taken]


def _func(one: One) -> Func:
    func = (one if isinstance(one, Job) else one[1]).candidate.func
    assert func is not None
    return func


def _kinds(func: Func) -> set[Kind]:
    calls = {(one.name,) for one in intrins(func) if one.c is not None}
    return {*kinds_of_name(func.name), *calls}


def kinds_of_name(name: str) -> set[Kind]:
    """Its parts, and each two of its words."""
    words = sorted({*re.findall("[a-z]+", name)})
    parts = {(part,) for part in name.split("_")}
    return {*itertools.combinations(words, 2), *parts}


class Some(Protocol):
    def __call__(self, jobs: Sequence[One], /) -> list[One]: ...


# a test with the argument `some`, which jobs of those that it is given it hands to C
SOME = pytest.mark.parametrize(
    "some",
    [of_each_kind, pytest.param(list, id="all", marks=pytest.mark.sweep)],
)
