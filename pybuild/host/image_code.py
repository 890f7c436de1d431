"""The models of one image on this machine: what they share is there once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pybuild.emit.llvm.model import modules
from pybuild.emit.tables.pool import Pool
from pybuild.host.compiled_model import Compiled


class Code:
    """Compiled when first asked for, once for each back end.

    sources  of all models and what they share, for the C compiler
    Owner    its instances keep it alive
    """

    def __init__(self, pool: Pool, sources: Callable[[], Mapping[str, str]]) -> None:
        self.pool = pool
        self._sources = sources

    def compiled(self, backend: str, name: str) -> Compiled:
        """The model of this name; backend "llvm" or "c".

        Errors  BuildError where "c" finds no compiler
        """
        if backend == "c":
            from pybuild.host.cc import loaded

            library, folder = self._library
            return loaded(name, library, folder)
        made: Compiled = self._jit.model(name)
        return made

    @functools.cached_property
    def _jit(self) -> Any:
        from pybuild.host.jit import Jit, bitcode, user_functions

        pool = self.pool
        shared = (pool.models, pool.kernels, pool.constants)
        kernels = [func for func, _ in pool.kernels]
        code = bitcode(functools.partial(modules, *shared))
        return Jit(code, user_functions(kernels))

    @functools.cached_property
    def _library(self) -> tuple[Path, Any]:
        from pybuild.host.cc import compiled_library

        return compiled_library(self.pool.name, self._sources())
