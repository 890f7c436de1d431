"""Which of many kernels a C compiler with sanitizers gets: all take it minutes, where
LLVM takes seconds. `--all` gives it all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import pytest

from pybuild.ir.loop import Func
from tests.kernels.few.kinds import few_of_each_kind
from tests.kernels.kernel_bench import Job

One = TypeVar("One", Job, tuple[str, Job])


def of_each_kind(jobs: Sequence[One]) -> list[One]:
    """The jobs of few kernels."""
    funcs = [_func(one) for one in jobs]
    few = few_of_each_kind(funcs)
    return [one for one, func in zip(jobs, funcs, strict=True) if func in few]


def _func(one: One) -> Func:
    func = (one if isinstance(one, Job) else one[1]).candidate.func
    assert func is not None
    return func


class Some(Protocol):
    def __call__(self, jobs: Sequence[One], /) -> list[One]: ...


# a test with the argument `some`, which jobs of those that it is given it hands to C
SOME = pytest.mark.parametrize(
    "some",
    [
        pytest.param(of_each_kind, id="some"),
        pytest.param(list, id="all", marks=pytest.mark.sweep),
    ],
)
