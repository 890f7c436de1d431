"""The calls of docs/rpc-protocol.md by name: their numbers, words and answers.

Knows no session and no module.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

from pybuild.dtype import Array
from pybuild.records import dataclass
from pybuild.rpc.link import Call

NONE = 0xFFFFFFFF
IMAGE_AT = 64  # of an image in its buffer
_OUTCOME = struct.Struct("<iIQ")


class Number(IntEnum):
    """The numbers of calls, as in enum crt_rpc_call of crt/calls.h."""

    ECHO = 0
    TICKS = 1
    ALLOCATE = 2
    RELEASE = 3
    WRITE = 4
    READ = 5
    OPEN = 6
    CREATE = 7
    SET = 8
    GET = 9
    RUN = 10
    STAGE = 11
    SETUP = 12
    RESET = 13
    LOAD = 14
    SHARE = 15
    UNBIND = 16
    BIND = 17
    WATCH = 18


def call(number: Number, *words: int, data: bytes = b"") -> Call:
    match number:
        case Number.ECHO:
            gives = len(data)
        case Number.TICKS:
            gives = 4
        case Number.READ | Number.GET:
            gives = words[-1]
        case Number.RUN | Number.STAGE | Number.SETUP:
            gives = _OUTCOME.size
        case _:
            gives = 0
    return Call((int(number), *words), data, gives)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: the step that failed (-1: none), the tensor that is missing
    (NONE), ticks.
    """

    failed: int
    missing: int
    ticks: int


def outcome(data: bytes) -> Outcome:
    return Outcome(*_OUTCOME.unpack_from(data))


def pieces(size: int, most: int) -> Iterator[tuple[int, int]]:
    """The offset and length of each piece of so many bytes; at least one."""
    for at in range(0, max(size, 1), most):
        yield at, min(most, size - at)


def writes(buffer: int, at: int, data: bytes, most: int) -> list[Call]:
    """The calls that write bytes into a buffer; most: data of a frame."""
    return [
        call(Number.WRITE, buffer, at + start, data=data[start : start + size])
        for start, size in pieces(len(data), most - 12)
    ]


def reads(buffer: int, at: int, size: int, most: int) -> list[Call]:
    return [
        call(Number.READ, buffer, at + start, count)
        for start, count in pieces(size, most - 4)
    ]


def sets(graph: int, index: int, array: Array, most: int) -> list[Call]:
    """The calls that set an input in pieces; only the last one makes it count as
    given."""
    data = array.tobytes()
    parts = list(pieces(len(data), most - 20))
    return [
        call(
            Number.SET, graph, index, at, int((at, size) == parts[-1]),
            data=data[at : at + size],
        )
        for at, size in parts
    ]  # fmt: skip


def gets(graph: int, tensor: int, size: int, most: int) -> list[Call]:
    return [
        call(Number.GET, graph, tensor, at, count)
        for at, count in pieces(size, most - 4)
    ]
