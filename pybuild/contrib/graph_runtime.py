"""tvm.contrib.graph_runtime, as TVM 0.7 called it: pybuild.graph_executor."""

from __future__ import annotations

from pybuild.graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
