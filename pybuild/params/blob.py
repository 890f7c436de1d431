"""TVM's parameter blob: named arrays, without checksum or alignment.

Written in the order of the names, so equal arrays give equal bytes. Knows no graph.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
CPU = 1
MAX_RANK = 32
_ARRAY_HEADER = struct.Struct("<QQiiiBBH")

# (code, bits) of DLPack <-> numpy
_TYPES: dict[tuple[int, int], str] = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 1): "bool",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
}  # fmt: skip
_CODES = {name: code for code, name in _TYPES.items()}
_KINDS = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat"}


def is_blob(data: bytes) -> bool:
    """True if the first bytes are those of a parameter blob."""
    return data[:8] == struct.pack("<Q", LIST_MAGIC)


def write_blob(
    arrays: Mapping[str, npt.ArrayLike], source: str = "parameters"
) -> bytes:
    """A blob of these arrays, sorted by name; what TVM's load_param_dict reads.

    Errors  BuildError for every array of a type that the format cannot hold
    """
    order = sorted(arrays)
    values = [np.asarray(arrays[name]) for name in order]
    found = [
        Problem(f"{source}: '{name}'", f"the blob has no type {value.dtype}")
        for name, value in zip(order, values, strict=True)
        if value.dtype.name not in _CODES
    ]
    if found:
        raise BuildError.of(found)
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(order))]
    for name in order:
        text = name.encode()
        parts += [struct.pack("<Q", len(text)), text]
    parts.append(struct.pack("<Q", len(values)))
    for value in values:
        parts += _array_parts(value)
    return b"".join(parts)


def _array_parts(value: Array) -> list[bytes]:
    code, bits = _CODES[value.dtype.name]
    data = value.astype(value.dtype.newbyteorder("<")).tobytes()
    rank = value.ndim
    header = _ARRAY_HEADER.pack(ARRAY_MAGIC, 0, CPU, 0, rank, code, bits, 1)
    return [header, struct.pack(f"<{rank}qq", *value.shape, len(data)), data]


def read_blob(data: bytes, source: str = "parameters") -> dict[str, Array]:
    """The arrays of a blob, which may hold anything: every length is checked.

    Owner   the arrays are copies
    Errors  BuildError that says where the blob stops making sense
    """
    reader = _Reader(data, source)
    names = reader.names()
    count = reader.count("the number of arrays", _ARRAY_HEADER.size)
    if count != len(names):
        raise reader.error(f"has {len(names)} names but {count} arrays")
    arrays = {name: reader.array(name) for name in names}
    if reader.at != len(data):
        raise reader.error(f"{len(data) - reader.at} bytes follow the last array")
    return arrays


def blob_names(data: bytes, source: str = "parameters") -> list[str]:
    """The names of a blob's arrays; of what follows only their number is read.

    Errors  BuildError as of read_blob
    """
    reader = _Reader(data, source)
    names = reader.names()
    count = reader.u64("the number of arrays")
    if count != len(names):
        raise reader.error(f"has {len(names)} names but {count} arrays")
    return names


class _Reader:
    """A place in a blob, and the checks that keep it inside."""

    def __init__(self, data: bytes, source: str) -> None:
        self.data, self.source, self.at = data, source, 0

    def error(self, what: str) -> BuildError:
        return BuildError(self.source, what)

    def take(self, length: int, what: str) -> bytes:
        if length > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise self.error(f"ends in {what}: {length} bytes wanted, {left} left")
        self.at += length
        return self.data[self.at - length : self.at]

    def u64(self, what: str) -> int:
        return int.from_bytes(self.take(8, what), "little")

    def count(self, what: str, least: int) -> int:
        """A count of things that take at least `least` bytes each."""
        number = self.u64(what)
        if number > (len(self.data) - self.at) // least:
            raise self.error(f"{what} is {number}, more than the file can hold")
        return number

    def names(self) -> list[str]:
        """The header and the names of the arrays, no two equal."""
        if not is_blob(self.data):
            raise self.error("is not a parameter blob (its first bytes are others)")
        self.take(16, "the header")
        names = [self.name(i) for i in range(self.count("the number of names", 8))]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self.error(f"two arrays are named '{twice}'")
        return names

    def name(self, index: int) -> str:
        text = self.take(self.u64(f"name {index}"), f"name {index}")
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise self.error(f"name {index} is not UTF-8") from None

    def array(self, name: str) -> Array:
        what = f"array '{name}'"
        header = _ARRAY_HEADER.unpack(self.take(_ARRAY_HEADER.size, what))
        magic, _, device, _, rank, code, bits, lanes = header
        if magic != ARRAY_MAGIC:
            raise self.error(f"{what} does not begin as an array does")
        if device != CPU:
            raise self.error(f"{what} is of device type {device}, not of a CPU (1)")
        if not 0 <= rank <= MAX_RANK:
            raise self.error(f"{what} has rank {rank}, not 0 to {MAX_RANK}")
        kind = _TYPES.get((code, bits))
        if kind is None or lanes != 1:
            text = f"{_KINDS.get(code, f'code {code}')}{bits}"
            text += f"x{lanes}" if lanes != 1 else ""
            raise self.error(f"{what} is of type {text}, which is not supported")
        return self.values(what, rank, np.dtype(kind))

    def values(self, what: str, rank: int, dtype: np.dtype[np.generic]) -> Array:
        shape = struct.unpack(f"<{rank}q", self.take(8 * rank, what))
        if any(dim < 0 for dim in shape):
            raise self.error(f"{what} has shape {list(shape)}")
        size = self.u64(what)
        if size != math.prod(shape) * dtype.itemsize:
            text = f"{what} has {size} bytes for {dtype.name}{list(shape)}"
            raise self.error(text)
        stored = np.frombuffer(self.take(size, what), dtype.newbyteorder("<"))
        try:
            return stored.astype(dtype).reshape(shape)
        except ValueError:  # dimensions beyond numpy's, beside one that is 0
            raise self.error(f"{what} has shape {list(shape)}") from None
