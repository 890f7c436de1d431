"""Prints NAME_params.c: the parameter image as an array, and what opens it."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.c.braces import braced
from pybuild.emit.c.constants import number_lines
from pybuild.emit.tables.tables import Constant, Tables
from pybuild.params.image_read import read_image


def params_file(
    tables: Tables, image: bytes, banner: str, elsewhere: Constant | None = None
) -> str:
    """The image with the alignment that its payloads need.

    elsewhere  the array of another file that has them; None: it is here
    """
    name, upper = tables.name, tables.name.upper()
    own = Constant(f"{name}_params_image", image_words(image), "")
    words, symbol = (elsewhere or own).array, (elsewhere or own).symbol
    kind = f"uint{8 * words.itemsize}_t"
    there = f"const {kind} {symbol}[{words.size}]"
    array = [
        "/* words of the lowest byte first: as docs/formats.md has the bytes */",
        f"static {there} CRT_SECTION_WEIGHTS = {{",
        *number_lines(words), "};",
    ]  # fmt: skip
    if elsewhere is not None:
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


def image_words(image: bytes) -> Array:
    """The image as an array of C, aligned as its payloads need it."""
    size = 8 if read_image(image).align >= 8 else 4
    whole = image.ljust(-(-len(image) // size) * size, b"\0")
    return np.frombuffer(whole, f"<u{size}")
