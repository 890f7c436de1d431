"""Semihosting as a simulator without it needs it: files in memory, and the end.

Source: Arm's semihosting specification; RISC-V has the same calls.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from pybuild.boards.simulators.simulator import Files

_WRITES = range(4, 12)  # fopen modes "w" to "a+b"

Read = Callable[[int, int], bytes]
Write = Callable[[int, bytes], None]


class Semihost:
    """The host's side of the calls that boards/common/semihosting.c makes.

    said  what went to the console
    code  exit code, None while the program runs
    """

    def __init__(self, files: Files, read: Read, write: Write) -> None:
        self._given = files
        self._read = read
        self._write = write
        self._handles: dict[int, tuple[str, int]] = {}  # name, position
        self.files: dict[str, bytearray] = {}
        self.said = bytearray()
        self.code: int | None = None

    def call(self, operation: int, arguments: int) -> int:
        """The answer to one call, as the program sees it."""
        match operation:
            case 0x01:  # SYS_OPEN
                return self._open(*self._words(arguments, 3))
            case 0x02:  # SYS_CLOSE
                (handle,) = self._words(arguments, 1)
                return 0 if self._handles.pop(handle, None) else -1
            case 0x03:  # SYS_WRITEC
                self.said += self._read(arguments, 1)
                return 0
            case 0x05:  # SYS_WRITE
                return self._put(*self._words(arguments, 3))
            case 0x06:  # SYS_READ
                return self._take(*self._words(arguments, 3))
            case 0x0A:  # SYS_SEEK
                return self._seek(*self._words(arguments, 2))
            case 0x20:  # SYS_EXIT_EXTENDED
                _, self.code = self._words(arguments, 2)
                return 0
        return -1

    def _words(self, at: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self._read(at, 4 * count))

    def _open(self, name_at: int, mode: int, length: int) -> int:
        name = self._read(name_at, length).decode()
        if mode in _WRITES:
            self.files[name] = bytearray()
        elif name not in self._given:
            return -1
        handle = 1 + max(self._handles, default=0)
        self._handles[handle] = (name, 0)
        return handle

    def _seek(self, handle: int, at: int) -> int:
        if handle not in self._handles:
            return -1
        name, _ = self._handles[handle]
        self._handles[handle] = (name, at)
        return 0

    def _put(self, handle: int, at: int, size: int) -> int:
        """The bytes that were not written."""
        if handle not in self._handles:
            return size
        name, _ = self._handles[handle]
        self.files[name] += self._read(at, size)
        return 0

    def _take(self, handle: int, at: int, size: int) -> int:
        """The bytes that were not read."""
        if handle not in self._handles:
            return size
        name, position = self._handles[handle]
        data = self._given[name][position : position + size]
        self._handles[handle] = (name, position + len(data))
        self._write(at, data)
        return size - len(data)
