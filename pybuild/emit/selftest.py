"""Prints NAME_selftest.c: input and output vectors, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.emit.model_c import number_lines
from pybuild.emit.tables import LAZY, Tables, TensorRow

# of the largest magnitude in the output
FLOAT_TOLERANCE = 1e-4


def selftest_file(tables: Tables, values: Mapping[str, Array], banner: str) -> str:
    """The self-test; `values` holds every input and output by tensor name."""
    name = tables.name
    parts = [banner, f'#include "{name}.h"', "", "#ifdef CRT_WITH_SELFTEST", ""]
    for role, rows in (("input", tables.inputs), ("output", tables.outputs)):
        for index, row in enumerate(rows):
            symbol = f"{name}_selftest_{role}_{index}"
            parts += _vector(row, symbol, values[row.tensor.name])
        parts += _taken(name, rows) if role == "output" else []
    parts += _compare(tables)
    parts += [f"int {name}_selftest(struct {name} *m)", "{", "    int error;", ""]
    for index, row in enumerate(tables.inputs):
        size = f"(uint32_t)sizeof {name}_selftest_input_{index}"
        verb = "bind" if row.flags & LAZY else "set"
        parts += [
            f"    error = crt_graph_{verb}_input(&m->graph, {index},",
            f"        {name}_selftest_input_{index}, {size});",
            "    if (error != CRT_OK)",
            "        return error;",
        ]
    parts += [f"    error = {name}_run(m);", "    if (error != CRT_OK)"]
    parts += ["        return error;"]
    for index, row in enumerate(tables.outputs):
        if row.device:
            parts += _take(name, index)
        parts += _check(row, name, index, values[row.tensor.name])
    return "\n".join([*parts, "    return CRT_OK;", "}", "", "#endif", ""])


def _vector(row: TensorRow, symbol: str, value: Array) -> list[str]:
    kind = row.tensor.dtype.c
    head = f"static const {kind} {symbol}[{max(value.size, 1)}] = {{"
    return [head, *number_lines(value), "};", ""]


def _compare(tables: Tables) -> list[str]:
    floats = any(r.tensor.dtype is DType.FLOAT32 for r in tables.outputs)
    bytes_ = any(r.tensor.dtype is not DType.FLOAT32 for r in tables.outputs)
    lines: list[str] = []
    if floats:
        lines += [
            "static int is_near(const float *a, const float *b, uint32_t n,",
            "                   float most)",
            "{",
            "    uint32_t i;",
            "",
            "    for (i = 0; i < n; i++) {",
            "        const float d = a[i] - b[i];",
            "        if (!(d <= most && -d <= most))",
            "            return 0;",
            "    }",
            "    return 1;",
            "}",
            "",
        ]
    if bytes_:
        lines += [
            "static int is_same(const void *a, const void *b, uint32_t bytes)",
            "{",
            "    const uint8_t *x = (const uint8_t *)a;",
            "    const uint8_t *y = (const uint8_t *)b;",
            "",
            "    while (bytes > 0 && *x++ == *y++)",
            "        bytes--;",
            "    return bytes == 0;",
            "}",
            "",
        ]
    return lines


def _taken(name: str, rows: tuple[TensorRow, ...]) -> list[str]:
    """Memory for outputs that are on devices."""
    return [
        f"static {row.tensor.dtype.c} {name}_taken_{index}[{row.tensor.size}];"
        for index, row in enumerate(rows)
        if row.device
    ]


def _take(name: str, index: int) -> list[str]:
    """Copies an output from its device."""
    have = f"{name}_taken_{index}"
    return [
        f"    error = crt_graph_get_output(&m->graph, {index}, {have},",
        f"        (uint32_t)sizeof {have});",
        "    if (error != CRT_OK)",
        "        return error;",
    ]


def _check(row: TensorRow, name: str, index: int, value: Array) -> list[str]:
    have, want = f"{name}_{row.symbol}(m)", f"{name}_selftest_output_{index}"
    if row.device:
        have = f"{name}_taken_{index}"
    if row.tensor.dtype is DType.FLOAT32:
        largest = float(np.abs(value).max()) if value.size else 0.0
        most = f"{max(largest, 1e-6) * FLOAT_TOLERANCE:.3e}f"
        test = f"is_near({have}, {want}, {value.size}u, {most})"
    else:
        test = f"is_same({have}, {want}, (uint32_t)sizeof {want})"
    return [f"    if (!{test})", "        return CRT_ERR_SELFTEST;"]
