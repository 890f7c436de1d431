"""Devices of an instance on this machine: whose memory each region of a model is.

The CPU is one of them; others are the user's, made of a struct crt_device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pybuild.dtype import Array
from pybuild.host.abi import check, ffi

_DEVICE = -19  # CRT_ERR_DEVICE
_LINE = 64  # bytes


class Device(Protocol):
    """The interface of a device that Net needs.

    Owner   the device stays as long as any instance has it
    """

    @property
    def struct(self) -> Any:
        """Its entry of the table: (api, context) of struct crt_device, as cffi has it,
        from pybuild.host.abi.ffi(); (NULL, NULL): work for the CPU."""
        ...

    def allocate(self, size: int) -> Array:
        """Memory of the device for a region: bytes at its addresses, aligned to 16.

        Who gets them hands the address on and never looks at them.
        """
        ...


def aligned(size: int) -> Array:
    """Zeros for a region of memory of the CPU: from the start of a line of its cache,
    so that vectors lie in one line."""
    memory = np.zeros(max(size, 1) + _LINE, np.uint8)
    shift = -memory.ctypes.data % _LINE
    return memory[shift : shift + max(size, 1)]


class Cpu:
    """This machine's processor and memory, under whatever number."""

    @property
    def struct(self) -> Any:
        return ffi().NULL, ffi().NULL

    def allocate(self, size: int) -> Array:
        return aligned(size)


def read(device: Device, piece: Array) -> Array:
    """A copy of bytes of a device's memory, when it has done its work.

    Errors  CRT_ERR_DEVICE
    """
    api, context = device.struct
    if not api:
        return piece.copy()
    made: Array = np.empty(piece.size, np.uint8)
    to, start = (ffi().cast("void *", a.ctypes.data) for a in (made, piece))
    if api.copy_out(context, to, start, piece.size) or api.wait(context):
        check(_DEVICE)
    return made


def device_table(count: int, given: Sequence[Device]) -> tuple[Device, ...]:
    """`count` devices, the CPU first.

    Errors  ValueError for another number of them
    """
    if given and len(given) != count:
        what = f"the model is for {count} devices, not {len(given)}"
        raise ValueError(f"{what}; the first is the CPU")
    return tuple(given) or tuple(Cpu() for _ in range(count))
