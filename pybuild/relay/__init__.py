"""Replacements for tvm.relay: files, a build, parameter files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.dtype import Array
from pybuild.entry import Buildable
from pybuild.entry import build as _build
from pybuild.library import Library
from pybuild.relay import frontend
from pybuild.runtime.params import load_param_dict, save_param_dict

__all__ = ["build", "frontend", "load_param_dict", "save_param_dict"]


def build(
    mod: Buildable,
    target: str = "llvm",
    *,
    params: Mapping[str, Array] | None = None,
    mod_name: str = "default",
) -> Library:
    """Same as pybuild.build, with TVM's order of arguments; weights may be replaced.

    mod     what pybuild.build takes
    params  values of inputs by name, which are parameters then
    Errors  BuildError
    """
    how: dict[str, Any] = {"target": target, "mod_name": mod_name}
    made: Library = _build(mod, weights=params or None, params="replaceable", **how)
    return made
