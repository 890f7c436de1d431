"""Old import paths of public modules, kept for one version."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

# "": a package of such names
MOVED = {
    "pybuild.graph": "pybuild.ir.graph",
    "pybuild.kernels.builder": "pybuild.kernels.base.builder",
    "pybuild.loop": "pybuild.ir.loop",
    "pybuild.run": "",
    "pybuild.run.board": "",
    "pybuild.run.board.bench": "pybuild.boards.bench",
    "pybuild.run.board.device": "pybuild.boards.device",
}


class Moved:
    """Finds and loads them, after all other finders; importlib.abc has the names of its
    functions, and takes 6 ms. A DeprecationWarning says where they are."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: object = None
    ) -> ModuleSpec | None:
        if fullname not in MOVED:
            return None
        loader = cast("Loader", self)
        return ModuleSpec(fullname, loader, is_package=not MOVED[fullname])

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one."""

    def exec_module(self, module: ModuleType) -> None:
        now = MOVED[module.__name__]
        if now:
            what = (
                f"{module.__name__} is {now} now; this name goes with the next version"
            )
            warnings.warn(what, DeprecationWarning, stacklevel=2)
            there = vars(import_module(now))
            own = {n: v for n, v in there.items() if not n.startswith("__")}
            vars(module).update(own)
