"""The one place that reads outside files: regular ones, of a limited size.

A device or a pipe may have no end, and one that nobody writes to keeps a reader
waiting; they are refused before a byte is read.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# of a model, of samples, of a file that people write, of a report
MODEL, SAMPLES, WRITTEN, REPORT = 2 * GIB, 8 * GIB, MIB, 64 * MIB
EXTERNAL = 64 * GIB  # of tensors beside a model, of which each is read alone
# of C that people write, a key, a list of files
TEXT = 16 * MIB
_BINARY = getattr(os, "O_BINARY", 0)
_FLAGS = (
    os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # fmt: skip
_KINDS = {
    stat.S_IFCHR: "is a device", stat.S_IFBLK: "is a device",
    stat.S_IFIFO: "is a pipe", stat.S_IFSOCK: "is a socket",
}  # fmt: skip


def opened(path: str | os.PathLike[str], most: int) -> BufferedReader:
    """A regular file of at most so many bytes.

    Errors  OSError whose strerror says why, as open() has it
    """
    try:
        number = os.open(path, _FLAGS)
    except ValueError:  # of characters that no path has
        raise OSError(errno.EINVAL, "is not a path", os.fspath(path)) from None
    try:
        facts = os.fstat(number)
        _must_be_regular(os.fspath(path), facts)
        if facts.st_size > most:
            what = f"has {facts.st_size:,} bytes, at most {most:,} are read"
            raise OSError(errno.EFBIG, what, os.fspath(path))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _must_be_regular(path: str, facts: os.stat_result) -> None:
    kind = stat.S_IFMT(facts.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if kind != stat.S_IFREG:
        what = f"{_KINDS.get(kind, 'is something else')}, no regular file"
        raise OSError(errno.EINVAL, what, path)


def read_bytes(path: str | os.PathLike[str], most: int = MODEL) -> bytes:
    """The bytes of a regular file of at most that size.

    Errors  OSError
    """
    with opened(path, most) as file:
        data = file.read(most + 1)  # one that grows meanwhile ends here
    if len(data) > most:
        what = f"has more than {most:,} bytes"
        raise OSError(errno.EFBIG, what, os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], most: int = TEXT) -> str:
    """UTF-8, with the ends of lines that Python has.

    Errors  OSError; UnicodeDecodeError, which is a ValueError
    """
    text = read_bytes(path, most).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_regular(path: Path) -> bool:
    """True if opened() would take it, as far as its kind goes."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
