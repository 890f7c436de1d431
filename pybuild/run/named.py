"""The tensors of an instance by name or number, and arrays that fit them; wherever the
instance is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.graph import Tensor
from pybuild.run.abi import UnknownName

Key = str | int


def index_of(key: Key, tensors: tuple[Tensor, ...], role: str) -> int:
    """Which of the tensors has this name, or this number.

    role    what they are, for the message
    Errors  UnknownName listing the known names
    """
    if isinstance(key, int):
        if not 0 <= key < len(tensors):
            raise UnknownName(f"{role} {key}: there are {len(tensors)}")
        return key
    for index, tensor in enumerate(tensors):
        if tensor.name == key:
            return index
    known = ", ".join(repr(t.name) for t in tensors) or "none"
    raise UnknownName(f"{role} '{key}' is not known; there is {known}")


def fitting(tensor: Tensor, value: Any) -> Array:
    """The value in one piece.

    Errors  ValueError for another shape or type
    """
    array: Array = np.asarray(value)
    if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
        want = f"{tensor.dtype.value}{list(tensor.shape)}"
        have = f"{array.dtype.name}{list(array.shape)}"
        raise ValueError(f"'{tensor.name}' is {want}, not {have}")
    return np.ascontiguousarray(array)
