"""Element types: their names, sizes and numpy and C spellings."""

from __future__ import annotations

import enum
import functools
import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Ints = npt.NDArray[np.int64]  # wide enough for sums of any layer


class DType(enum.Enum):
    """An element type; the value is its name in every file and message."""

    BOOL = "bool"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT64 = "float64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"

    # members are compared by what they are: Enum's own takes Python for each of the
    # hundreds of thousands of a build
    __hash__ = object.__hash__

    @property
    def bytes(self) -> int:
        """Size of one element."""
        return self.numpy.itemsize

    @functools.cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type of the same bits."""
        if self is DType.BFLOAT16:  # of the package that onnx brings
            wide: Any = importlib.import_module("ml_dtypes")
            kind: np.dtype[np.generic] = np.dtype(wide.bfloat16)
            return kind
        plain: np.dtype[np.generic] = np.dtype(self.value)
        return plain

    @property
    def c(self) -> str:
        """The C99 type of the same bits."""
        return _C.get(self, f"{self.value}_t")

    @property
    def is_float(self) -> bool:
        return self in (DType.FLOAT32, DType.FLOAT64, *HALVES)

    @property
    def is_unsigned(self) -> bool:
        return self.value.startswith("uint")

    @property
    def low(self) -> int:
        """Least value of an integer type."""
        return 0 if self is DType.BOOL else int(np.iinfo(self.value).min)

    @property
    def high(self) -> int:
        """Greatest value of an integer type."""
        return 1 if self is DType.BOOL else int(np.iinfo(self.value).max)

    @classmethod
    def of(cls, array: Array) -> DType:
        """The type of a numpy array; ValueError if we have no such type."""
        return _named(array.dtype)


@functools.cache  # numpy makes the name anew each time
def _named(dtype: np.dtype[Any]) -> DType:
    return DType(dtype.name)


_C = {
    DType.FLOAT32: "float", DType.FLOAT64: "double", DType.BOOL: "uint8_t",
    # their bits: C99 has no such types
    DType.FLOAT16: "uint16_t", DType.BFLOAT16: "uint16_t",
}  # fmt: skip

# computed in float32
HALVES = (DType.FLOAT16, DType.BFLOAT16)


def widened(array: Array) -> Any:
    """Halves as float32, others as they are."""
    return array.astype(np.float32) if DType.of(array) in HALVES else array


_SAMPLE = 64  # values, of which one mostly says that others are not float16


def fits_half(array: Array) -> bool:
    """True if every value is float32 with a float16 of the same value; NaN has none."""
    values = array.reshape(-1)
    return all(_are_halves(some) for some in (values[:_SAMPLE], values))


def _are_halves(values: Array) -> bool:
    if DType.of(values) is not DType.FLOAT32:
        return False
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        again = values.astype(np.float16).astype(np.float32)
    return np.array_equal(again, values)
