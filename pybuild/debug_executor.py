"""Graph executors that show each layer, as scripts for TVM's know them."""

from __future__ import annotations

from pathlib import Path

from pybuild.executor.debug import GraphModuleDebug
from pybuild.executor.dump import functions_of
from pybuild.executor.factory import Factory
from pybuild.executor.table import cpu_first
from pybuild.graph_executor import Devices, get_device, library_for
from pybuild.ops.base.functions import AnyFunctions

__all__ = ["GraphModuleDebug", "create"]


def create(
    graph_json_str: str,
    libmod: Factory | AnyFunctions,
    device: Devices,
    dump_root: str | Path | None = None,
) -> GraphModuleDebug:
    """Does the same as graph_executor.create; a library's own weights are set.

    dump_root  the folder for files; None: a new temporary one, until exit()
    Errors     BuildError; ValueError for something that is not a device
    """
    devices, _, _ = get_device(libmod, device)
    table = cpu_first(devices)
    library = library_for(graph_json_str, libmod, table)
    bound = isinstance(libmod, Factory)
    functions = functions_of(graph_json_str)
    return GraphModuleDebug.of(library, table, bound, dump_root, functions)
