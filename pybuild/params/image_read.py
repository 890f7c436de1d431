"""Verifies a parameter image: the rules of crt/src/params.c, in the same order."""

from __future__ import annotations

import math
import struct
import zlib

from pybuild.errors import BuildError
from pybuild.params.codecs import NONE
from pybuild.params.image import (
    CRC_FROM,
    DTYPES,
    ENTRY,
    HEADER,
    MAGIC,
    MAX_ALIGN,
    MIN_ALIGN,
    VERSION,
    Entry,
    Image,
)


def is_image(data: bytes | memoryview) -> bool:
    """True if the first bytes are those of a parameter image."""
    return bytes(data[:4]) == MAGIC


def read_image(data: bytes | memoryview, source: str = "image") -> Image:
    """An image, after a check of everything but the packed payloads' content.

    data    bytes, or a file mapping; bytes after the image's own are not looked at
    Owner   the image refers to `data`
    Errors  BuildError for anything wrong
    """
    if len(data) < HEADER.size or not is_image(data):
        raise BuildError(source, "is not a parameter image")
    facts = HEADER.unpack_from(data)
    _, crc, version, align, total, count, reserved, plan, content = facts
    if version != VERSION:
        what = f"is a parameter image of version {version}"
        raise BuildError(source, what, f"this pybuild reads version {VERSION}")
    if not HEADER.size <= total <= len(data):
        what = f"says it has {total} bytes, {len(data)} are here"
        raise BuildError(source, what, "the file was cut")
    if zlib.crc32(data[CRC_FROM:total]) != crc:
        raise BuildError(source, "is damaged: its checksum does not fit")
    if reserved or not MIN_ALIGN <= align <= MAX_ALIGN or align & (align - 1):
        raise BuildError(source, "has an impossible header")
    if count > (total - HEADER.size) // ENTRY.size:
        raise BuildError(source, f"cannot hold {count} parameters")
    whole = memoryview(data)[:total]
    reader = _Entries(whole, source, align, HEADER.size + ENTRY.size * count)
    entries = tuple(reader.entry(i) for i in range(count))
    return Image(source, data, align, plan, content, entries)


class _Entries:
    """The table of an image, and what each row may point to."""

    def __init__(self, data: memoryview, source: str, align: int, first: int) -> None:
        self.data, self.source, self.align, self.first = data, source, align, first
        self.before = b""

    def entry(self, index: int) -> Entry:
        row = ENTRY.unpack_from(self.data, HEADER.size + ENTRY.size * index)
        name_at, length, number, rank, dims_at, layout = row[:6]
        codec, reserved, at, stored, size, content = row[6:]
        name = self.name(index, name_at, length)
        if reserved or number not in DTYPES:
            raise self.error(index, f"has an unknown type {number}")
        shape = self.shape(index, dims_at, rank)
        if not self.holds(at, stored) or at % self.align:
            raise self.error(index, "has no payload inside the image")
        if codec == NONE and stored != size:
            raise self.error(index, f"has {stored} bytes for {size}")
        dtype = DTYPES[number]
        if layout == 0 and size != math.prod(shape) * dtype.bytes:
            what = f"has {size} bytes for {dtype.value}{list(shape)}"
            raise self.error(index, what)
        return Entry(name, dtype, shape, layout, codec, at, stored, size, content)

    def name(self, index: int, at: int, length: int) -> str:
        """A name that ends in NUL and follows the one before in the order."""
        if not self.holds(at, length + 1):
            raise self.error(index, "has no name inside the image")
        text = bytes(self.data[at : at + length + 1])
        if text.find(b"\0") != length or text[:-1] <= self.before:
            raise self.error(index, "has a name out of order")
        self.before = text[:-1]
        try:
            return self.before.decode()
        except UnicodeDecodeError:
            raise self.error(index, "has a name that is not UTF-8") from None

    def shape(self, index: int, at: int, rank: int) -> tuple[int, ...]:
        if at % 4 or not self.holds(at, 4 * rank):
            raise self.error(index, "has no shape inside the image")
        shape = struct.unpack_from(f"<{rank}i", self.data, at)
        if any(dim < 0 for dim in shape):
            raise self.error(index, f"has shape {list(shape)}")
        return shape

    def holds(self, at: int, length: int) -> bool:
        return self.first <= at <= len(self.data) and length <= len(self.data) - at

    def error(self, index: int, what: str) -> BuildError:
        return BuildError(f"{self.source}: parameter {index}", what)
