"""Element types: their names, sizes and numpy and C spellings."""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


class DType(enum.Enum):
    """An element type; the value is its name in every file and message."""

    BOOL = "bool"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"

    @property
    def bytes(self) -> int:
        """Size of one element."""
        return self.numpy.itemsize

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type of the same bits."""
        return np.dtype(self.value)

    @property
    def c(self) -> str:
        """The C99 type of the same bits."""
        return _C.get(self, f"{self.value}_t")

    @property
    def is_float(self) -> bool:
        return self is DType.FLOAT32

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
        return cls(array.dtype.name)


_C = {DType.FLOAT32: "float", DType.BOOL: "uint8_t"}
