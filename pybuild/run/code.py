"""The models of one image on this machine: what they share is there once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pybuild.emit.model_llvm import modules
from pybuild.emit.pool import Pool
from pybuild.install import host_library
from pybuild.plan.plan import Plan
from pybuild.run.native import Net


class Code:
    """Compiled when first asked for, once for each back end.

    sources  of all models and what they share, for the C compiler
    Owner    its instances keep it alive
    """

    def __init__(self, pool: Pool, sources: Callable[[], Mapping[str, str]]) -> None:
        self.pool = pool
        self._sources = sources

    def net(self, backend: str, name: str, plan: Plan) -> Net:
        """An instance of the model of this name; backend "llvm" or "c".

        Errors  BuildError where "c" finds no compiler
        """
        if backend == "c":
            library, folder = self._library
            return Net.load(plan, library, name, (folder, self))
        return Net(plan, host_library(), self._jit.model(name), self)

    @functools.cached_property
    def _jit(self) -> Any:
        from pybuild.run.jit import Jit

        pool = self.pool
        shared = (pool.models, pool.kernels, pool.constants)
        kernels = [func for func, _ in pool.kernels]
        return Jit(functools.partial(modules, *shared), kernels)

    @functools.cached_property
    def _library(self) -> tuple[Path, Any]:
        from pybuild.run.cc import compiled_library

        return compiled_library(self.pool.name, self._sources())
