"""Our parameter image: aligned payloads that are used in place, checked by CRC-32.

The bytes are described in docs/formats.md; crt/src/params.c reads the same. Knows no
graph: a layout is a number, a plan is a hash. See image_read.py and image_write.py.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import field

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.params.codecs import CODECS, NONE, Codecs
from pybuild.records import dataclass

MAGIC = b"CRTP"
VERSION = 1
HEADER = struct.Struct("<4sIHHIIIQQ")
ENTRY = struct.Struct("<IHBBIIHHIIIQ")
MIN_ALIGN, MAX_ALIGN = 4, 32768
CRC_FROM = 8

# enum crt_dtype of crt/types.h
DTYPES = {
    1: DType.BOOL, 2: DType.INT8, 3: DType.UINT8, 4: DType.INT16, 5: DType.INT32,
    6: DType.INT64, 7: DType.FLOAT32, 8: DType.UINT16, 9: DType.UINT32,
    10: DType.UINT64, 11: DType.FLOAT64, 12: DType.FLOAT16, 13: DType.BFLOAT16,
}  # fmt: skip
DTYPE_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Parameter:
    """A named payload.

    payload  unpacked, little-endian
    layout   0: the elements in row-major order; else an arrangement of some plan's
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    payload: bytes
    layout: int = 0

    @property
    def content(self) -> int:
        """Equal for equal payloads; the first 8 bytes of their SHA-256."""
        return hash64(self.payload)


@dataclass(frozen=True)
class Entry:
    """One parameter as an image says it is stored."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    layout: int
    codec: int
    at: int
    stored: int
    bytes: int
    content: int


@dataclass(frozen=True)
class Image:
    """A verified image; its payloads stay where they are.

    plan     hash of the plan that its layouts belong to, 0: of none
    content  equal for equal parameters, however they are packed
    """

    source: str
    data: bytes | memoryview = field(repr=False)
    align: int
    plan: int
    content: int
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry:
        """The entry of that name.

        Errors  BuildError that lists the names there are
        """
        for entry in self.entries:
            if entry.name == name:
                return entry
        known = ", ".join(e.name for e in self.entries) or "none"
        raise BuildError(self.source, f"has no parameter '{name}'", f"it has {known}")

    def view(self, name: str) -> Array:
        """The array where it lies, never copied.

        Owner   `data` (bytes or a file mapping) keeps it; read only if that is
        Errors  BuildError for a packed parameter or another layout
        """
        entry = self.entry(name)
        if entry.codec != NONE:
            raise self._error(entry, "is packed", "take value()")
        return self._shaped(entry, self._stored(entry))

    def value(self, name: str, codecs: Codecs | None = None) -> Array:
        """A copy of the array, unpacked.

        codecs  of the user's codec numbers
        Errors  BuildError for an unknown codec, a damaged payload, another layout
        """
        return self._shaped(self.entry(name), self.payload(name, codecs)).copy()

    def payload(self, name: str, codecs: Codecs | None = None) -> bytes:
        """The bytes of a parameter, unpacked, in whatever layout.

        Errors  BuildError for an unknown codec or a damaged payload
        """
        entry = self.entry(name)
        codec = {**CODECS, **(codecs or {})}.get(entry.codec)
        if codec is None:
            what = f"is packed by codec {entry.codec}, which is not known here"
            raise self._error(entry, what, "give its function in `codecs`")
        try:
            made = codec.unpack(bytes(self._stored(entry)), entry.bytes)
        except ValueError as error:
            raise self._error(entry, f"is damaged: {error}") from None
        if len(made) != entry.bytes or hash64(made) != entry.content:
            raise self._error(entry, "unpacks to other bytes than were packed")
        return made

    def parameters(self, codecs: Codecs | None = None) -> tuple[Parameter, ...]:
        """All of them, unpacked and their content checked.

        Errors  BuildError with every damaged one
        """
        made: list[Parameter] = []
        found: list[Problem] = []
        for e in self.entries:
            try:
                data = self.payload(e.name, codecs)
                made.append(Parameter(e.name, e.dtype, e.shape, data, e.layout))
            except BuildError as error:
                found += error.problems
        if not found and content_of(made) != self.content:
            found.append(Problem(self.source, "its content hash differs"))
        if found:
            raise BuildError.of(found)
        return tuple(made)

    def _stored(self, entry: Entry) -> memoryview:
        return memoryview(self.data)[entry.at : entry.at + entry.stored]

    def _shaped(self, entry: Entry, data: bytes | memoryview) -> Array:
        if entry.layout != 0:
            what = f"is in layout {entry.layout} of plan {self.plan:016x}"
            raise self._error(entry, what, "convert the file it was packed from")
        stored = np.frombuffer(data, entry.dtype.numpy.newbyteorder("<"))
        try:
            return stored.astype(entry.dtype.numpy, copy=False).reshape(entry.shape)
        except ValueError:  # more dimensions than numpy's, or larger beside a 0
            what = f"has a shape of {len(entry.shape)} dimensions that numpy cannot"
            raise self._error(entry, f"{what} hold") from None

    def _error(self, entry: Entry, what: str, hint: str = "") -> BuildError:
        return BuildError(f"{self.source}: parameter '{entry.name}'", what, hint)


def content_of(order: Iterable[Parameter]) -> int:
    """The hash of all parameters: of names, types, shapes, layouts and payloads."""
    text = b""
    for p in order:
        head = (len(p.name.encode()), DTYPE_NUMBERS[p.dtype], len(p.shape))
        text += struct.pack("<HBB", *head) + p.name.encode()
        text += struct.pack(f"<{len(p.shape)}iIQ", *p.shape, p.layout, p.content)
    return hash64(text)


def hash64(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")
