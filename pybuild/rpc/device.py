"""Devices in scripts that stand for boards."""

from __future__ import annotations

from typing import Protocol

from pybuild.host.ndarray import Device
from pybuild.host.source import Source
from pybuild.records import dataclass
from pybuild.rpc.net import RemoteNet


class Host(Protocol):
    """The interface that makes instances on the board; remote.py's Remote has it."""

    def instance(self, source: Source) -> tuple[Source, RemoteNet]: ...


@dataclass(frozen=True)
class RemoteDevice(Device):
    """The CPU of a board."""

    remote: Host = None  # type: ignore[assignment]  # there is no other default

    @property
    def type(self) -> str:
        return "cpu"

    def __str__(self) -> str:
        return f"remote cpu({self.device_id})"
