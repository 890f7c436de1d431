"""Prints NAME_params.c: the parameter image as an array, and what opens it."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.c.constants import number_lines
from pybuild.emit.tables.tables import Tables

_WORD = {4: ("uint32_t", "<u4"), 8: ("uint64_t", "<u8")}


def params_file(tables: Tables, image: bytes, banner: str) -> str:
    """The image with the alignment that its payloads need."""
    name, upper = tables.name, tables.name.upper()
    kind, words = _words(tables, image)
    symbol = f"{name}_params_image"
    lines = [
        banner, f'#include "{name}.h"', '#include "crt/unpack.h"', "",
        "/* words of the lowest byte first: as docs/formats.md has the bytes */",
        f"static const {kind} {symbol}[{words.size}] CRT_SECTION_WEIGHTS = {{",
        *number_lines(words), "};", "",
        f"int {name}_open_params({open_arguments(tables)})",
        "{",
        f"    int error = crt_params_verify(params, {symbol},",
        f"                                  {upper}_PARAMS_BYTES);",
        "",
    ]  # fmt: skip
    if tables.unpacked_bytes:
        lines += [
            "    if (error == CRT_OK)",
            "        error = crt_params_unpack_all(",
            f"            params, ram, {upper}_UNPACKED_BYTES, NULL, NULL);",
        ]
    return "\n".join([*lines, "    return error;", "}", ""])


def open_arguments(tables: Tables) -> str:
    """Of NAME_open_params."""
    more = ", void *ram" if tables.unpacked_bytes else ""
    return f"struct crt_params *params{more}"


def _words(tables: Tables, image: bytes) -> tuple[str, Array]:
    size = max(4, *(row.tensor.dtype.bytes for row in tables.parameters))
    kind, form = _WORD[size]
    return kind, np.frombuffer(image.ljust(-(-len(image) // size) * size, b"\0"), form)
