"""What stands for a board where scripts name a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybuild.run.tensors import Device

if TYPE_CHECKING:
    from pybuild.run.rpc.remote import Remote


@dataclass(frozen=True)
class RemoteDevice(Device):
    """The CPU of a board."""

    remote: Remote = None  # type: ignore[assignment]  # there is no other default

    @property
    def type(self) -> str:
        return "cpu"

    def __str__(self) -> str:
        return f"remote cpu({self.device_id})"
