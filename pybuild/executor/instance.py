"""The instances that a module drives: on this machine, or on a board."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pybuild.dtype import Array
from pybuild.host import trace as record
from pybuild.host.devices import Cpu
from pybuild.host.devices import Device as Accelerator
from pybuild.host.native import Net
from pybuild.host.ndarray import Device
from pybuild.host.source import Source
from pybuild.host.timing import BenchmarkResult, Timing
from pybuild.rpc import watch
from pybuild.rpc.device import RemoteDevice
from pybuild.rpc.net import RemoteNet

Instance = Net | RemoteNet
# a name, or what does the work of a device of the model
AnyDevice = Device | Accelerator


def new_instance(
    source: Source, devices: Sequence[AnyDevice]
) -> tuple[Source, Instance]:
    """A new instance, and its library: on a board, the library for the board's core."""
    first = devices[0] if devices else None
    if isinstance(first, RemoteDevice):
        return first.remote.instance(source)
    several = [Cpu() if isinstance(d, Device) else d for d in devices]
    return source, source.instance(None, several if len(several) > 1 else ())


def local(net: Instance) -> Net:
    """The instance, if it is on this machine.

    Errors  ValueError for an instance on a board
    """
    if isinstance(net, RemoteNet):
        raise ValueError("the memory of a board is not this machine's")
    return net


def must_be_together(one: Instance, other: Instance) -> None:
    """Checks that both instances are in one place.

    Errors  ValueError unless both are open, and on this machine or on one board
    """
    one.must_be_open()
    other.must_be_open()
    if isinstance(one, RemoteNet) != isinstance(other, RemoteNet):
        raise ValueError("one of the modules is on a board, the other is not")


def share_parameter(net: Instance, mine: int, donor: Instance, theirs: int) -> None:
    """Makes one parameter share that of the donor."""
    must_be_together(net, donor)
    if isinstance(net, RemoteNet):
        assert isinstance(donor, RemoteNet)
        net.share_parameter(mine, donor, theirs)
    else:
        net.share_parameter(mine, local(donor), theirs)


def recorded(
    net: Instance, inputs: Mapping[str, Any], there: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Runs once; every tensor of the plan by its name, `inputs` as they were given.

    there  inputs that the instance has already
    """
    if not isinstance(net, RemoteNet):
        return record.recorded(net, inputs, there)
    for name, value in inputs.items():
        net.set_input(name, value)
    kept = {name: s.initial for name, s in net.plan.graph.state.items()}
    given = {**kept, **(there or {}), **inputs}
    return record.tensors_of(net.plan, watch.recorded(net, given), given)


def stage_times(
    net: Instance, how: Timing, before: Callable[[], None]
) -> list[list[float]]:
    """Seconds of each stage in each repeat, for the inputs that are there; before:
    called before each run.
    """
    if isinstance(net, RemoteNet):
        return net.stage_times(how, before)
    return record.stage_times(net, how, before)


def step_time(
    net: Instance, step: int, how: Timing, before: Callable[[], None]
) -> BenchmarkResult:
    """Times one step alone, again and again; on a board: its stage, in whole runs."""
    if not isinstance(net, RemoteNet):
        return record.step_time(net, step, how, before)
    stage = next(s for s, steps in enumerate(net.stage_steps) if step in steps)
    return BenchmarkResult(net.stage_times(how, before)[stage])
