"""tvm.contrib.debugger.debug_executor under its name: pybuild.debug_executor."""

from __future__ import annotations

from pybuild.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
