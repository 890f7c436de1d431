"""What a module drives: an instance of a model on this machine, or on a board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pybuild.run.devices import Cpu
from pybuild.run.devices import Device as Accelerator
from pybuild.run.native import Net
from pybuild.run.rpc.device import RemoteDevice
from pybuild.run.rpc.net import RemoteNet
from pybuild.run.tensors import Device

if TYPE_CHECKING:
    from pybuild.run.parameters import Source

Instance = Net | RemoteNet
# a name, or what does the work of a device of the model
AnyDevice = Device | Accelerator


def new_instance(
    source: Source, devices: Sequence[AnyDevice]
) -> tuple[Source, Instance]:
    """An instance, and its library: on a board, that for the board's core."""
    first = devices[0] if devices else None
    if isinstance(first, RemoteDevice):
        return first.remote.instance(source)
    several = [Cpu() if isinstance(d, Device) else d for d in devices]
    return source, source.instance(None, several if len(several) > 1 else ())


def local(net: Instance) -> Net:
    """Errors  ValueError for an instance on a board"""
    if isinstance(net, RemoteNet):
        raise ValueError("the memory of a board is not this machine's")
    return net


def must_be_together(one: Instance, other: Instance) -> None:
    """Errors  ValueError unless both are on this machine, or on one board"""
    if isinstance(one, RemoteNet) != isinstance(other, RemoteNet):
        raise ValueError("one of the modules is on a board, the other is not")


def share_params(net: Instance, donor: Instance, names: Sequence[str]) -> None:
    """Makes parameters of these names the donor's own."""
    must_be_together(net, donor)
    if isinstance(net, RemoteNet):
        assert isinstance(donor, RemoteNet)
        net.share_params(donor, names)
    else:
        net.share_params(local(donor), names)


def read_where(
    net: Instance, key: str | int, other: Instance, other_key: str | int
) -> bool:
    """Lets an input on a board be read where another instance there has a tensor;
    False: they are on this machine.
    """
    must_be_together(net, other)
    if not isinstance(net, RemoteNet) or not isinstance(other, RemoteNet):
        return False
    net.read_where(key, other, other_key)
    return True
