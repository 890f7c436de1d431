"""tvm.contrib.graph_executor under its name: pybuild.graph_executor."""

from __future__ import annotations

from pybuild.graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
