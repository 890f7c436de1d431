"""Graph executors as scripts for TVM's know them: create, GraphModule.

What differs is in docs/graph-executor.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pybuild.entry import model_of
from pybuild.errors import BuildError
from pybuild.executor.factory import Factory, Package
from pybuild.executor.instance import AnyDevice
from pybuild.executor.module import GraphModule, setup_shared_storage
from pybuild.executor.table import cpu_first, on_table, type_of
from pybuild.host.abi import UnknownName
from pybuild.host.ndarray import Device
from pybuild.ops.base.functions import AnyFunctions, library_of
from pybuild.passes.awaited import with_awaited
from pybuild.rpc.device import RemoteDevice

__all__ = [
    "GraphModule", "UnknownName", "create", "get_device", "library_for",
    "setup_shared_storage",
]  # fmt: skip

Devices = AnyDevice | Sequence[AnyDevice]


def create(
    graph_json_str: str, libmod: Factory | AnyFunctions, device: Devices
) -> GraphModule:
    """An instance of a graph; its weights are not set.

    libmod  the library that was built of this graph, get_lib() of one; or functions
            that its nodes call, None if each names its operator: it is then compiled
            here; inputs that kernels pack (weights) are parameters, others inputs
    device  one, or several, one of them the CPU: tvm.cpu(0), tvm.device("ext_dev"),
            whose work the CPU does, what does the work of a device
            (pybuild/host/devices.py), or remote.device(0) alone
    Errors  BuildError; ValueError for something that is not a device
    """
    devices, _, _ = get_device(libmod, device)
    table = cpu_first(devices)
    library = library_for(graph_json_str, libmod, table)
    return GraphModule.of(library, table, bound=False)


def get_device(libmod: Any, device: Devices) -> tuple[list[AnyDevice], int, list[int]]:
    """The devices, how many of them are remote, and their numbers in a row.

    libmod  what they are for: a library, or functions
    Errors  BuildError for what is not a function; ValueError for what is not a device,
            and for devices of different machines
    """
    if isinstance(libmod, Package):
        raise ValueError(f"{libmod}: there are several models, take one of them")
    if not isinstance(libmod, Factory):
        library_of(libmod)
    devices = list(device) if isinstance(device, Sequence) else [device]
    known = (isinstance(one, Device) or hasattr(one, "struct") for one in devices)
    if not devices or not all(known):
        raise ValueError("dev has to be the type of Device or a list of Device")
    remote = [d.remote for d in devices if isinstance(d, RemoteDevice)]
    if remote and len(remote) != len(devices):
        raise ValueError("Either all or none of the devices should be rpc.")
    if any(one is not remote[0] for one in remote):
        raise ValueError("the devices are of different boards")
    if len(remote) > 1:
        raise ValueError("a board is one device: give it alone")
    ids = [d.device_id if isinstance(d, Device) else 0 for d in devices]
    pairs = zip(map(type_of, devices), ids, strict=True)
    return devices, len(remote), [n for pair in pairs for n in pair]


def library_for(
    graph_json_str: str, libmod: Factory | AnyFunctions, table: Sequence[AnyDevice]
) -> Factory:
    """The library given, if it is of this graph; else one that is built of it.

    table   the devices, the CPU first
    Errors  BuildError
    """
    if not isinstance(graph_json_str, str):
        raise TypeError("the graph must be the text of a graph JSON")
    if not graph_json_str.lstrip().startswith("{"):
        what = f"{graph_json_str[:40]!r} is not a graph JSON"
        raise BuildError("graph JSON", what, "give its text, not a path")
    if not isinstance(libmod, Factory):
        return _compiled(graph_json_str, libmod, table)
    if _nodes(graph_json_str) != _nodes(libmod.get_graph_json()):
        what = f"the library '{libmod.name}' was built of another graph"
        raise BuildError("graph JSON", what, "give its own, get_graph_json()")
    return libmod


def _compiled(
    graph_json_str: str, functions: AnyFunctions, table: Sequence[AnyDevice]
) -> Factory:
    """A factory for graphs of functions: packed weights are parameters, and have no
    value yet."""
    model = model_of(graph_json_str, functions)
    late = replace(model, graph=with_awaited(on_table(model.graph, table)))
    target = dict.fromkeys(range(len(table)), "host") if len(table) > 1 else "host"
    made = late.build(target=target, input="keep", plan="whole", storage="given")
    return replace(made, backend="llvm", bound=False)


def _nodes(text: str) -> Any:
    try:
        top = json.loads(text)
        return top["nodes"], top["heads"], top["attrs"]["shape"], top["attrs"]["dltype"]
    except (ValueError, KeyError, TypeError) as error:
        what = f"is not a graph JSON ({error})"
        raise BuildError("graph JSON", what) from None
