"""Arrays as scripts for graph executors expect them: numpy's, with a device.

Knows no model; there is one kind of memory, the CPU's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.ir.graph import Tensor
from pybuild.records import dataclass

# DLPack's numbers
_TYPES = {"cpu": 1, "llvm": 1, "c": 1, "stackvm": 1, "ext_dev": 12}
_NAMES = {1: "cpu", 12: "ext_dev"}


@dataclass(frozen=True)
class Device:
    """The n-th device of a type; `ext_dev` is an accelerator of the user's."""

    device_type: int
    device_id: int = 0

    def __post_init__(self) -> None:
        for name in ("device_type", "device_id"):  # numpy's integers, too
            object.__setattr__(self, name, operator.index(getattr(self, name)))

    @property
    def type(self) -> str:
        """Its name: "cpu", "ext_dev", or a number that has none."""
        return _NAMES.get(self.device_type, str(self.device_type))

    def __str__(self) -> str:
        return f"{self.type}({self.device_id})"

    @property
    def exist(self) -> bool:
        """True if this machine has it without a driver of yours."""
        return self == cpu()

    def sync(self) -> None:
        """Returns when all is done; it always is."""


# stands for an accelerator that has no other name
EXT_DEV = Device(_TYPES["ext_dev"])


def device(kind: str | int, index: int = 0) -> Device:
    """The device of a name ("cpu", or the target "llvm" or "c") or DLPack's number.

    Errors  ValueError that lists the known names
    """
    if not isinstance(kind, str):
        return Device(kind, index)
    if kind.split()[0] not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        raise ValueError(f"device '{kind}' is not known; there is {known}")
    return Device(_TYPES[kind.split()[0]], index)


def cpu(index: int = 0) -> Device:
    """This machine, as scripts for TVM name it."""
    return Device(_TYPES["cpu"], index)


def ext_dev(index: int = 0) -> Device:
    """An accelerator of the user's, which a model for several devices is given."""
    return Device(_TYPES["ext_dev"], index)


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that is also what TVM's scripts call NDArray or Tensor."""

    where: Device

    def __array_finalize__(self, source: object) -> None:
        self.where = getattr(source, "where", cpu())

    @property
    def device(self) -> Device:  # type: ignore[override]
        """The device of the array."""
        return self.where

    def numpy(self) -> npt.NDArray[Any]:
        """A copy, as a plain numpy array."""
        return np.array(self, copy=True, subok=False)

    asnumpy = numpy

    def same_as(self, other: object) -> bool:
        """True if both are the same memory, with the same shape and type."""
        if not isinstance(other, np.ndarray):
            return False
        mine, its = self.__array_interface__, other.__array_interface__
        return all(
            mine[key] == its[key] for key in ("data", "shape", "strides", "typestr")
        )

    def to_dlpack(self) -> Any:
        """The memory as a DLPack capsule, to be taken once.

        Errors  BufferError for an array that cannot be written
        """
        return np.asarray(self).__dlpack__()

    def copyto(self, target: Array | Device) -> NDArray:
        """Copies to an array of the same shape and type, or to a new one there."""
        if isinstance(target, Device):
            return array(self, target)
        return ndarray(target).copyfrom(self)

    def copyfrom(self, source: Any) -> NDArray:
        """Copies values into the array.

        Errors  ValueError for another shape, or values that the type cannot hold
        """
        self[...] = fitting("the array", self.shape, self.dtype, source)
        return self


class Sent(NDArray):
    """A copy of an input that lies elsewhere; what is copied to it is sent there."""

    sent: Callable[[Array], None]

    def __array_finalize__(self, source: object) -> None:
        super().__array_finalize__(source)
        self.sent = getattr(source, "sent", lambda array: None)

    def copyfrom(self, source: Any) -> NDArray:
        super().copyfrom(source)
        self.sent(self)
        return self


def sent(values: Array, to: Callable[[Array], None]) -> Array:
    """The same memory; what is copied to it goes to `to`, too."""
    made = values.view(Sent)
    made.sent = to
    return made


def ndarray(values: Array, where: Device | None = None) -> NDArray:
    """The same memory as an NDArray."""
    if isinstance(values, NDArray) and where is None:
        return values
    made = values.view(NDArray)
    made.where = where or made.where
    return made


def array(values: Any, device: Device | None = None) -> NDArray:
    """A copy as an NDArray; the type stays, float64 and int64 too.

    device  whose it is said to be; the memory is the CPU's
    """
    return ndarray(np.array(values, order="C", subok=False), device)


def empty(
    shape: tuple[int, ...], dtype: str = "float32", device: Device | None = None
) -> NDArray:
    """An array of zeros."""
    return ndarray(np.zeros(shape, dtype), device)


@dataclass(frozen=True)
class _Capsule:
    """The object that numpy asks a library for, to share its memory."""

    capsule: Any

    def __dlpack__(self, **asked: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _TYPES["cpu"], 0


def from_dlpack(there: Any) -> NDArray:
    """The memory of a capsule, which can then only be read, or of another array.

    Errors  TypeError for what is neither; RuntimeError for memory of another device
    """
    if type(there).__name__ == "PyCapsule":
        there = _Capsule(there)
    if not hasattr(there, "__dlpack__"):
        raise TypeError(f"{type(there).__name__} gives no memory by DLPack")
    return ndarray(np.from_dlpack(there))


def converted(tensor: Tensor, value: Any) -> Array:
    """The value as an array of the tensor's shape and type.

    Errors  ValueError for another shape, or naming a value that the type cannot hold
    """
    return fitting(f"'{tensor.name}'", tensor.shape, tensor.dtype.numpy, value)


def fitting(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any
) -> Array:
    have: Array = np.asarray(value)
    want = f"{name} is {dtype.name}{list(shape)}"
    kinds = "fiub" if dtype.kind == "f" else "iub" if dtype.kind in "iu" else ""
    if have.shape != shape or not (have.dtype == dtype or have.dtype.kind in kinds):
        raise ValueError(f"{want}, not {have.dtype.name}{list(have.shape)}")
    lost = have[np.logical_not(is_held(dtype, have))]
    if lost.size:
        raise ValueError(f"{want}, which cannot hold {lost.flat[0]}")
    return np.ascontiguousarray(have, dtype).reshape(shape)


def is_held(dtype: np.dtype[Any], have: Array) -> Array:
    """Flags for the values that a type can hold: floats rounded, but not to infinity;
    integers exactly.
    """
    if dtype.kind == "f" and have.dtype.kind == "f":
        with np.errstate(over="ignore"):
            made = have.astype(dtype)
        return np.asarray(np.isfinite(made) == np.isfinite(have))
    if have.dtype.kind not in "iu" or have.dtype == dtype:
        return np.ones(have.shape, bool)
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype.name)
    high = 2 ** (limits.nmant + 1) if dtype.kind == "f" else int(limits.max)
    low = -high if dtype.kind == "f" else int(limits.min)
    values: Any = have
    bounds: Any = np.iinfo(have.dtype.name)
    within: Any = np.ones(have.shape, bool)
    if low > bounds.min:
        within &= values >= low
    if high < bounds.max:
        within &= values <= high
    if dtype.kind == "f":  # beyond, only some have so few digits
        there = np.logical_not(within)
        within[there] = [_is_exact(dtype, int(value)) for value in have[there]]
    return np.asarray(within)


def _is_exact(dtype: np.dtype[Any], value: int) -> bool:
    """True if a type of floats holds an integer as it is."""
    with np.errstate(over="ignore"):
        made = dtype.type(value)
    return bool(np.isfinite(made)) and int(made) == value
