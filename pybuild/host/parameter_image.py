"""A parameter image on this machine: packed once, read by any number of instances."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.files.read import read_bytes
from pybuild.host.abi import check, crt_of, ffi
from pybuild.install import host_library
from pybuild.params.codecs import Codec
from pybuild.params.image import Parameter
from pybuild.params.image_write import write_image
from pybuild.plan.buffers.parameter_slots import Slot

_ALIGN = 64


def packed_image(
    slots: Collection[Slot],
    values: Mapping[str, Array],
    codec: Codec | None = None,
    named: bool = True,
) -> bytes:
    """The image of these slots; `values` by the name of the slot, as it is stored.

    named  else for a model without names: slots are known by their numbers
    """
    made = []
    for index, slot in enumerate(slots):
        value = values[slot.name]
        little = value.astype(value.dtype.newbyteorder("<"), copy=False)
        tensor = slot.tensor
        name = tensor.name if named else str(index)
        data = little.tobytes()
        made.append(Parameter(name, tensor.dtype, tensor.shape, data, slot.layout))
    align = max((s.tensor.dtype.bytes for s in slots), default=0)
    return write_image(made, codec, max(align, 4))


def aligned(size: int) -> Array:
    """`size` zero bytes at an address that suits any kernel."""
    memory = np.zeros(size + _ALIGN, np.uint8)
    shift = -memory.ctypes.data % _ALIGN
    return memory[shift : shift + size]


class Weights:
    """A verified image in memory.

    Owner   keep it as long as an instance uses it (`users`); instances do so too
    Errors  CRT_ERR_FORMAT, CRT_ERR_CHECKSUM, ... for bytes that are not an image
    """

    def __init__(self, image: bytes) -> None:
        self._ffi = ffi()
        self._lib = crt_of(host_library())
        self.image = aligned(len(image))
        self.image[:] = np.frombuffer(image, np.uint8)
        self.struct: Any = self._ffi.new("struct crt_params *")
        data = self._ffi.cast("const void *", self.image.ctypes.data)
        check(self._lib.crt_params_verify(self.struct, data, len(image)))
        self._unpack()

    def _unpack(self) -> None:
        """LZ4 payloads, once for all instances."""
        size = int(self._lib.crt_params_unpacked_bytes(self.struct))
        if size == 0:
            return
        self.unpacked = aligned(size)
        to = self._ffi.cast("void *", self.unpacked.ctypes.data)
        null = self._ffi.NULL
        check(self._lib.crt_params_unpack_all(self.struct, to, size, null, null))

    @classmethod
    def read(cls, path: Path) -> Weights:
        """The weights of an image file."""
        return cls(read_bytes(path))

    @property
    def users(self) -> int:
        """Parameters of instances that are bound to it."""
        return int(self.struct.users)

    def close(self) -> None:
        """Releases the memory of the weights.

        Errors  CRT_ERR_IN_USE while an instance uses it
        """
        check(self._lib.crt_params_close(self.struct))
