"""Prints NAME_params.c: the parameter image as an array, and what opens it."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.c.braces import braced
from pybuild.emit.c.constants import number_lines
from pybuild.emit.tables.tables import Tables

_WORD = {4: "<u4", 8: "<u8"}


def params_file(tables: Tables, image: bytes, banner: str, elsewhere: str = "") -> str:
    """The image with the alignment that its payloads need.

    elsewhere  the symbol of an array that another file has; "": it is here
    """
    name, upper = tables.name, tables.name.upper()
    words = image_words(tables, image)
    kind, symbol = f"uint{8 * words.itemsize}_t", elsewhere or f"{name}_params_image"
    there = f"const {kind} {symbol}[{words.size}]"
    array = [
        "/* words of the lowest byte first: as docs/formats.md has the bytes */",
        f"static {there} CRT_SECTION_WEIGHTS = {{",
        *number_lines(words), "};",
    ]  # fmt: skip
    if elsewhere:
        array = ["/* that of several models */", f"extern {there};"]
    lines = [
        banner, f'#include "{name}.h"', '#include "crt/unpack.h"', "",
        *array, "",
        f"int {name}_open_params(struct crt_params *params, void *ram)",
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
    else:
        lines.append("    (void)ram; /* nothing is packed */")
    return "\n".join(braced([*lines, "    return error;", "}", ""]))


def image_words(tables: Tables, image: bytes) -> Array:
    """The image as an array of C."""
    size = max(4, *(row.tensor.dtype.bytes for row in tables.parameters))
    whole = image.ljust(-(-len(image) // size) * size, b"\0")
    return np.frombuffer(whole, _WORD[size])
