"""crt as Python sees it: declarations for cffi and one exception per error code.

All of it is read from crt's headers: nothing here repeats them.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import cffi

from pybuild.install import crt_include

_HEADERS = (
    "types.h", "abi.h", "device.h", "graph.h", "params.h", "weights.h", "unpack.h",
    "push.h", "state.h",
)  # fmt: skip


class CrtError(RuntimeError):
    """A negative return of a crt function; `code` is its value."""

    code = 0


class UnknownName(KeyError, RuntimeError, AttributeError):
    """No tensor of this name or number; the message lists those that there are.

    All three kinds, as scripts for other executors catch one or another.
    """

    def __str__(self) -> str:
        return str(self.args[0])


@functools.cache
def errors() -> dict[int, type[CrtError]]:
    """Compiled -> exception class, named as in crt/error.h: CRT_ERR_ALIGN, ..."""
    text = (crt_include() / "crt" / "error.h").read_text(encoding="utf-8")
    found = re.findall(r'X\((\w+), (-?\d+),[\s\\]*"([^"]*)"\)', text)
    return {
        int(value): type(name, (CrtError,), {"code": int(value), "__doc__": reason})
        for name, value, reason in found
    }


def check(code: int) -> int:
    """The code itself if it is not an error.

    Errors  the exception class of the code
    """
    if code >= 0:
        return code
    kind = errors().get(code, CrtError)
    raise kind(f"{kind.__name__}: {kind.__doc__}")


def failure(code: int, what: str) -> CrtError:
    """The error of a code, to be raised; the message says of what."""
    kind = errors()[code]
    return kind(f"{kind.__name__}: {kind.__doc__}: {what}")


@functools.cache
def ffi() -> Any:
    """cffi with the declarations of crt's headers."""
    parsed = cffi.FFI()
    parsed.cdef("\n".join(_declarations(name) for name in _HEADERS))
    return parsed


@functools.cache
def crt_of(library: Path) -> Any:
    """The functions of crt in a shared library: opened once, for all instances."""
    return ffi().dlopen(str(library))


def _lengths(text: str) -> str:
    """The text with the default of each setting that is the length of an array."""
    settings = (crt_include() / "crt" / "config.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"#define (CRT_\w+) (\d+)$", settings, re.M))
    return re.sub(r"\[(CRT_\w+)\]", lambda name: f"[{found[name[1]]}]", text)


def _declarations(name: str) -> str:
    """A header without comments, directives and C++ brackets."""
    text = (crt_include() / "crt" / name).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return _lengths(re.sub(r'extern "C" \{(.*)\}', r"\1", text, flags=re.S))
