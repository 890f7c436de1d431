"""The test device of device.c, for instances on this machine."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.host.abi import ffi
from pybuild.host.cc import compile_shared
from pybuild.install import crt_sources

HERE = Path(__file__).parent
PACES = ("at once", "late", "thread")
COUNTS = ("copy_in", "copy_out", "launch", "wait")
_FLAGS = ("-std=gnu99", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-Wl,-Bsymbolic")


@functools.cache
def _library() -> tuple[ctypes.CDLL, Any]:
    """device.c with a crt of its own; the folder stays as long as it."""
    folder = tempfile.TemporaryDirectory(prefix="crt-device-")
    path = Path(folder.name) / "device.so"
    compile_shared([str(HERE / "device.c"), *map(str, crt_sources())], [], path, _FLAGS)
    library = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    library.device_new.restype = library.device_allocate.restype = pointer
    library.device_allocate.argtypes = [pointer, number]
    library.device_pace.argtypes = [pointer, ctypes.c_int]
    library.device_hold.argtypes = [pointer, ctypes.c_int]
    library.device_fail.argtypes = [pointer, ctypes.c_int]
    library.device_count.argtypes = [pointer, ctypes.c_int]
    library.device_free.argtypes = [pointer]
    return library, folder


class Protected:
    """A device with memory of its own.

    pace  "at once"; "late": only when it is waited for; "thread": when it likes
    """

    def __init__(self, pace: str = "at once") -> None:
        self._library, _ = _library()
        self._device = self._library.device_new()
        self.work(pace)

    @property
    def struct(self) -> Any:
        api = ctypes.addressof(ctypes.c_char.in_dll(self._library, "device_api"))
        known = ffi()
        return (
            known.cast("const struct crt_device_api *", api),
            known.cast("void *", self._device),
        )

    def allocate(self, size: int) -> Array:
        address = self._library.device_allocate(self._device, max(size, 1))
        window = (ctypes.c_uint8 * max(size, 1)).from_address(address)
        return np.frombuffer(window, np.uint8)

    def work(self, pace: str) -> None:
        """Changes the pace, between runs."""
        self._library.device_pace(self._device, PACES.index(pace))

    def hold(self, held: bool) -> None:
        """Does nothing until it is let go."""
        self._library.device_hold(self._device, held)

    def fail(self, calls: int) -> None:
        """The call after `calls - 1` others fails."""
        self._library.device_fail(self._device, calls)

    def count(self, what: str) -> int:
        """Calls so far."""
        return int(self._library.device_count(self._device, COUNTS.index(what)))

    def close(self) -> None:
        self._library.device_free(self._device)
