"""tvm.contrib.debugger.debug_runtime, as TVM 0.7 called it: pybuild.debug_executor."""

from __future__ import annotations

from pybuild.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
