"""Graph executors as scripts for TVM's know them: create, GraphModule.

What differs is in docs/graph-executor.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pybuild.entry import build, model_of
from pybuild.errors import BuildError
from pybuild.executor.factory import Factory, Package
from pybuild.executor.instance import AnyDevice
from pybuild.executor.module import GraphModule, setup_shared_storage
from pybuild.host.abi import UnknownName
from pybuild.host.ndarray import EXT_DEV, Device
from pybuild.ops.base.functions import AnyFunctions
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
    device  one, or several; the first is the CPU. tvm.cpu(0), what does the work of a
            device of the model (pybuild/host/devices.py), or remote.device(0)
    Errors  BuildError; ValueError for something that is no device
    """
    devices, _, _ = get_device(libmod, device)
    library = library_for(graph_json_str, libmod)
    return GraphModule.of(library, devices, bound=False)


def get_device(libmod: Any, device: Devices) -> tuple[list[AnyDevice], int, list[int]]:
    """The devices, how many of them are remote, and their numbers in a row.

    Errors  ValueError for what is no device; for devices of different machines
    """
    if isinstance(libmod, Package):
        raise ValueError(f"{libmod}: there are several models, take one of them")
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
    names = [d if isinstance(d, Device) else EXT_DEV for d in devices]
    numbers = [(d.device_type % 128, d.device_id) for d in names]
    return devices, len(remote), [n for pair in numbers for n in pair]


def library_for(graph_json_str: str, libmod: Factory | AnyFunctions) -> Factory:
    """The library given, if it is of this graph; else one that is built of it.

    Errors  BuildError
    """
    if not isinstance(graph_json_str, str):
        raise TypeError("the graph must be the text of a graph JSON")
    if not graph_json_str.lstrip().startswith("{"):
        what = f"{graph_json_str[:40]!r} is no graph JSON"
        raise BuildError("graph JSON", what, "give its text, not a path")
    if not isinstance(libmod, Factory):
        return _compiled(graph_json_str, libmod)
    if _nodes(graph_json_str) != _nodes(libmod.get_graph_json()):
        what = f"the library '{libmod.name}' was built of another graph"
        raise BuildError("graph JSON", what, "give its own, get_graph_json()")
    return libmod


def _compiled(graph_json_str: str, functions: AnyFunctions) -> Factory:
    """Of functions: what kernels pack is a parameter, and has no value yet."""
    model = model_of(graph_json_str, functions)
    late = replace(model, graph=with_awaited(model.graph))
    made = build(late, target="llvm", storage="given")
    return replace(made, bound=False)


def _nodes(text: str) -> Any:
    try:
        top = json.loads(text)
        return top["nodes"], top["heads"], top["attrs"]["shape"], top["attrs"]["dltype"]
    except (ValueError, KeyError, TypeError) as error:
        what = f"is no graph JSON ({error})"
        raise BuildError("graph JSON", what) from None
