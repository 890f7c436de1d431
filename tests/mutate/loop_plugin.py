"""A plugin of pytest: kernels of one function are built with a mutation.

CRT_MUTATE_LOOP: its file, function, operator and node, a line each.
CRT_MUTATED: the file that is made as soon as a kernel was changed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pybuild.ir.loop import Func
from pybuild.kernels.base import builder
from tests.mutate.loop_ops import mutated
from tests.mutate.mutation import ROOT, Mutation

_PLACE, _DONE = "CRT_MUTATE_LOOP", "CRT_MUTATED"
_init = builder.Builder.__init__
_verified = builder._verified
_finish = builder.Builder.finish


def environment(mutation: Mutation, done: Path) -> dict[str, str]:
    """For a process with this plugin."""
    operator = mutation.operator.removeprefix("loop ")
    place = (mutation.file, mutation.function, operator, mutation.node)
    return {_PLACE: "\n".join(place), _DONE: str(done)}


def pytest_configure() -> None:
    file, function, operator, node = os.environ[_PLACE].split("\n")
    changed = Path(os.environ[_DONE])
    wanted = str(ROOT / file)

    def init(self: builder.Builder, *given: Any, **named: Any) -> None:
        _init(self, *given, **named)
        code = sys._getframe(1).f_code
        name = code.co_qualname.replace(".<locals>", "")
        vars(self)["_is_mutated"] = code.co_filename == wanted and name == function

    def finish(self: builder.Builder, in_place: bool = False) -> Func:
        fresh = self._finished is None
        made = _finish(self, in_place)
        if fresh and vars(self)["_is_mutated"]:
            other = mutated(made, operator, node)
            if other is not None and other != made:
                changed.touch()
                self._finished = made = _verified(other)
        return made

    builder.Builder.__init__ = init  # type: ignore[method-assign]
    builder.Builder.finish = finish  # type: ignore[method-assign]
