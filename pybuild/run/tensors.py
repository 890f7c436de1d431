"""Arrays as scripts for graph executors expect them: numpy's, with a device.

Knows no model; there is one kind of memory, the CPU's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.graph import Tensor

# DLPack's numbers
_TYPES = {"cpu": 1, "llvm": 1, "c": 1, "stackvm": 1, "ext_dev": 12}
_NAMES = {1: "cpu", 12: "ext_dev"}


@dataclass(frozen=True)
class Device:
    """The n-th device of a type; `ext_dev` is an accelerator of the user's."""

    device_type: int
    device_id: int = 0

    @property
    def type(self) -> str:
        return _NAMES.get(self.device_type, str(self.device_type))

    def __str__(self) -> str:
        return f"{self.type}({self.device_id})"

    def sync(self) -> None:
        """Returns when all is done; it always is."""


# stands for an accelerator that has no other name
EXT_DEV = Device(_TYPES["ext_dev"])


def device(kind: str | int, index: int = 0) -> Device:
    """The device of a name ("cpu", or the target "llvm" or "c") or DLPack's number.

    Errors  ValueError that lists the known names
    """
    if isinstance(kind, int):
        return Device(kind, index)
    if kind.split()[0] not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        raise ValueError(f"device '{kind}' is not known; there is {known}")
    return Device(_TYPES[kind.split()[0]], index)


def cpu(index: int = 0) -> Device:
    return Device(_TYPES["cpu"], index)


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that is also what TVM's scripts call NDArray or Tensor."""

    where: Device

    def __array_finalize__(self, source: object) -> None:
        self.where = getattr(source, "where", cpu())

    @property
    def device(self) -> Device:  # type: ignore[override]
        return self.where

    def numpy(self) -> npt.NDArray[Any]:
        """A copy, as a plain numpy array."""
        return np.array(self, copy=True, subok=False)

    asnumpy = numpy

    def copyto(self, target: Array | Device) -> NDArray:
        """Copies to an array of the same shape and type, or to a new one there."""
        if isinstance(target, Device):
            return array(self, target)
        return ndarray(target).copyfrom(self)

    def copyfrom(self, source: Any) -> NDArray:
        """Errors  ValueError for another shape, or values that the type cannot hold"""
        self[...] = fitting("the array", self.shape, self.dtype, source)
        return self


def ndarray(values: Array, where: Device | None = None) -> NDArray:
    """The same memory as an NDArray."""
    made = values.view(NDArray)
    made.where = where or made.where
    return made


def array(values: Any, where: Device | None = None) -> NDArray:
    """A copy as an NDArray; the type stays, float64 and int64 too."""
    return ndarray(np.array(values, order="C", subok=False), where)


def empty(
    shape: tuple[int, ...], dtype: str = "float32", where: Device | None = None
) -> NDArray:
    """Of zeros."""
    return ndarray(np.zeros(shape, dtype), where)


def converted(tensor: Tensor, value: Any) -> Array:
    """The value as an array of the tensor's shape and type.

    Errors  ValueError for another shape, or values that the type cannot hold
    """
    return fitting(f"'{tensor.name}'", tensor.shape, tensor.dtype.numpy, value)


def fitting(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any
) -> Array:
    have: Array = np.asarray(value)
    if have.shape != shape or not _holds(dtype, have):
        want = f"{dtype.name}{list(shape)}"
        raise ValueError(f"{name} is {want}, not {have.dtype.name}{list(have.shape)}")
    return np.ascontiguousarray(have, dtype).reshape(shape)


def _holds(dtype: np.dtype[Any], have: Array) -> bool:
    """Whether a type holds the values: floats rounded, integers as they are."""
    if have.dtype == dtype:
        return True
    if dtype.kind == "f":
        return have.dtype.kind in "fiub"
    return (
        have.dtype.kind in "iub"
        and dtype.kind in "iu"
        and (have.size == 0 or _in_range(dtype, have))
    )


def _in_range(dtype: np.dtype[Any], have: Array) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= int(have.min()) and int(have.max()) <= limits.max)
