"""Writes a parameter image: sorted, aligned, the same bytes for the same parameters."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Mapping
from itertools import pairwise

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.params.codecs import NONE, Codec
from pybuild.params.image import (
    CRC_FROM,
    DTYPE_NUMBERS,
    ENTRY,
    HEADER,
    MAGIC,
    MAX_ALIGN,
    MIN_ALIGN,
    VERSION,
    Parameter,
    content_of,
)


def plain(
    arrays: Mapping[str, Array], source: str = "parameters"
) -> tuple[Parameter, ...]:
    """Arrays as parameters of layout 0.

    Errors  BuildError for every array of a type that no tensor has
    """
    made: list[Parameter] = []
    found: list[Problem] = []
    for name, value in arrays.items():
        try:
            dtype = DType.of(value)
        except ValueError:
            what = f"no tensor has the type {value.dtype}"
            found.append(Problem(f"{source}: parameter '{name}'", what))
            continue
        data = value.astype(dtype.numpy.newbyteorder("<")).tobytes()
        made.append(Parameter(name, dtype, value.shape, data))
    if found:
        raise BuildError.of(found)
    return tuple(made)


def write_image(
    parameters: Iterable[Parameter],
    codec: Codec | None = None,
    align: int = 16,
    plan: int = 0,
    source: str = "image",
) -> bytes:
    """An image of these parameters; equal payloads are stored once.

    codec   tried on each payload; kept where it saves bytes
    Units   align: bytes, a power of 2 from 4; of every payload
    Errors  BuildError with every parameter that does not fit the format
    """
    order = sorted(parameters, key=lambda p: p.name.encode())
    found = [*_misaligned(align, source), *_misfits(order, source)]
    if found:
        raise BuildError.of(found)
    at = HEADER.size + ENTRY.size * len(order)
    names = [p.name.encode() + b"\0" for p in order]
    dims = [struct.pack(f"<{len(p.shape)}i", *p.shape) for p in order]
    dims_at = _up(at + sum(map(len, names)), 4)
    body = _Body(at, align, source)
    body.add(b"".join(names).ljust(dims_at - at, b"\0") + b"".join(dims))
    table = bytearray()
    for p, name, dim in zip(order, names, dims, strict=True):
        number, stored = _packed(p.payload, codec)
        table += ENTRY.pack(
            at, len(name) - 1, DTYPE_NUMBERS[p.dtype], len(p.shape), dims_at,
            p.layout, number, 0, body.place(stored), len(stored), len(p.payload),
            p.content,
        )  # fmt: skip
        at, dims_at = at + len(name), dims_at + len(dim)
    whole = bytes(table + body.data)
    return _headed(whole, len(order), align, plan, content_of(order))


class _Body:
    """The part after the table: names, dimensions, then the payloads."""

    def __init__(self, start: int, align: int, source: str) -> None:
        self.start, self.align, self.source = start, align, source
        self.data = bytearray()
        self.places: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        """Adds data, and returns its offset in the image."""
        at = self.start + len(self.data)
        if at + len(data) >= 2**32:
            raise BuildError(self.source, "would be larger than 4 GB")
        self.data += data
        return at

    def place(self, stored: bytes) -> int:
        """The place of a payload: that of an equal one, or a new, aligned one."""
        if stored not in self.places:
            end = self.start + len(self.data)
            self.add(bytes(_up(end, self.align) - end))
            self.places[stored] = self.add(stored)
        return self.places[stored]


def _headed(body: bytes, count: int, align: int, plan: int, content: int) -> bytes:
    """The whole image: a header with the checksum, and what it is of."""
    total = HEADER.size + len(body)
    facts = (VERSION, align, total, count, 0, plan, content)
    rest = HEADER.pack(MAGIC, 0, *facts)[CRC_FROM:] + body
    return HEADER.pack(MAGIC, zlib.crc32(rest), *facts) + body


def _packed(payload: bytes, codec: Codec | None) -> tuple[int, bytes]:
    """Codec number and stored bytes: packed only if that is less."""
    if codec is not None:
        made = codec.pack(payload)
        if len(made) < len(payload):
            return codec.number, made
    return NONE, payload


def _misaligned(align: int, source: str) -> list[Problem]:
    if MIN_ALIGN <= align <= MAX_ALIGN and align & (align - 1) == 0:
        return []
    what = f"payloads cannot be aligned to {align} bytes"
    hint = f"a power of 2 from {MIN_ALIGN} to {MAX_ALIGN}"
    return [Problem(source, what, hint)]


def _misfits(order: list[Parameter], source: str) -> list[Problem]:
    """Everything about the parameters that the format cannot hold."""
    found = []
    for p in order:
        where = f"{source}: parameter '{p.name}'"
        text = p.name.encode()
        if b"\0" in text or not 1 <= len(text) <= 65535:
            found.append(Problem(where, "the name must be 1 to 65535 bytes, none NUL"))
        if len(p.shape) > 255 or any(not 0 <= d < 2**31 for d in p.shape):
            found.append(Problem(where, f"shape {list(p.shape)} does not fit"))
        elif p.layout == 0 and len(p.payload) != math.prod(p.shape) * p.dtype.bytes:
            what = f"{len(p.payload)} bytes for {p.dtype.value}{list(p.shape)}"
            found.append(Problem(where, what))
    for a, b in pairwise(order):
        if a.name == b.name:
            found.append(Problem(f"{source}: parameter '{a.name}'", "is given twice"))
    return found


def _up(number: int, align: int) -> int:
    return -(-number // align) * align
