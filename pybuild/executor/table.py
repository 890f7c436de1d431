"""Assigns the devices in a script's list to the nodes of a graph JSON.

Files of other writers say the type of a device (cpu is 1, ext_dev 12), ours its number
in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.executor.instance import AnyDevice
from pybuild.host.devices import Cpu
from pybuild.host.ndarray import EXT_DEV, Device, cpu
from pybuild.ir.graph import Graph


def type_of(device: AnyDevice) -> int:
    """DLPack's number of the device's type; a device driven by user code is an
    ext_dev."""
    if isinstance(device, Device):
        return device.device_type % 128
    return cpu().device_type if isinstance(device, Cpu) else EXT_DEV.device_type


def cpu_first(devices: Sequence[AnyDevice]) -> list[AnyDevice]:
    """The table of devices: the CPU, then the others in their order."""
    kinds = [type_of(device) for device in devices]
    if len(devices) < 2 or kinds[0] == cpu().device_type:
        return list(devices)
    if cpu().device_type not in kinds:
        return [cpu(), *devices]
    at = kinds.index(cpu().device_type)
    return [devices[at], *devices[:at], *devices[at + 1 :]]


def on_table(graph: Graph, table: Sequence[AnyDevice]) -> Graph:
    """The graph with numbers of the table for what its file says.

    Errors  BuildError for a type that no device of the table has
    """
    said = {*graph.locations().values(), *(node.device for node in graph.nodes)}
    kinds = [type_of(device) for device in table]
    if 0 in said or (len(said) == 1 and len(table) == 1):
        return graph
    if not said <= {*kinds}:
        if max(said) < len(table):
            return graph
        missing = ", ".join(str(Device(kind)) for kind in sorted(said - {*kinds}))
        what = f"its nodes are on {missing}, which is not given"
        given = ", ".join(str(Device(kind)) for kind in kinds)
        raise BuildError(graph.source, what, f"given are {given}")
    number = {kind: kinds.index(kind) for kind in said}
    return replace(
        graph,
        nodes=tuple(replace(n, device=number[n.device]) for n in graph.nodes),
        homes={name: number[kind] for name, kind in graph.homes.items()},
    )
