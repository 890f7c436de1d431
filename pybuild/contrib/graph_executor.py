"""tvm.contrib.graph_executor under its name; what it has is pybuild.graph_executor's."""

from __future__ import annotations

from pybuild.graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
