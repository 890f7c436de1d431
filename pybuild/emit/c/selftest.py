"""Prints NAME_selftest.c: input and output vectors, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import HALVES, Array, DType
from pybuild.emit.c.braces import braced
from pybuild.emit.c.constants import limits, number_lines
from pybuild.emit.c.row_input import push_whole
from pybuild.emit.tables.tables import LAZY, Tables, TensorRow

# of the largest magnitude in the output
FLOAT_TOLERANCE = 1e-4

# what compares numbers of a type
_NEAR = {DType.FLOAT32: "is_near", DType.FLOAT64: "is_near_double"}
# bits of float16: neighbours differ by one
_HALVES = [
    "static int is_near_half(const uint16_t *a, const uint16_t *b, uint32_t n)",
    "{",
    "    uint32_t i;",
    "",
    "    for (i = 0; i < n; i++) {",
    "        const int32_t d = (int32_t)a[i] - (int32_t)b[i];",
    "        if (d > 4 || d < -4)",
    "            return 0;",
    "    }",
    "    return 1;",
    "}",
    "",
]


def selftest_file(tables: Tables, values: Mapping[str, Array], banner: str) -> str:
    """The self-test; `values` holds every input and output by tensor name."""
    name = tables.name
    parts = [banner, f'#include "{name}.h"', "", "#ifdef CRT_WITH_SELFTEST", ""]
    rows = (*tables.inputs, *tables.outputs)
    parts += limits(values[row.tensor.name] for row in rows)
    for role, rows in (("input", tables.inputs), ("output", tables.outputs)):
        for index, row in enumerate(rows):
            symbol = f"{name}_selftest_{role}_{index}"
            parts += _vector(row, symbol, values[row.tensor.name])
        parts += _taken(name, rows) if role == "output" else []
    parts += _compare(tables)
    parts += [f"int {name}_selftest(struct {name} *m)", "{"]
    begun = f" = {name}_reset(m)" if tables.kept else ""
    parts += [f"    int error{begun};", ""]
    if tables.kept:
        parts += ["    if (error != CRT_OK)", "        return error;"]
    for index, row in enumerate(tables.inputs):
        size = f"(uint32_t)sizeof {name}_selftest_input_{index}"
        if row.rows:
            continue
        verb = "bind" if row.flags & LAZY else "set"
        parts += [
            f"    error = crt_graph_{verb}_input(&m->graph, {index},",
            f"        {name}_selftest_input_{index}, {size});",
            "    if (error != CRT_OK)",
            "        return error;",
        ]
    if tables.pushes:
        values_of = [f"{name}_selftest_input_{i}" for i in range(len(tables.inputs))]
        parts += push_whole(tables, values_of, "m->", "{")
        parts += ["    if (error != CRT_OK)", "        return error;"]
    parts += [f"    error = {name}_run(m);", "    if (error != CRT_OK)"]
    parts += ["        return error;"]
    for index, row in enumerate(tables.outputs):
        if row.device:
            parts += _take(name, index)
        parts += _check(row, name, index, values[row.tensor.name])
    return "\n".join(braced([*parts, "    return CRT_OK;", "}", "", "#endif", ""]))


def _vector(row: TensorRow, symbol: str, value: Array) -> list[str]:
    kind = row.tensor.dtype.c
    head = f"static const {kind} {symbol}[{max(value.size, 1)}] = {{"
    return [head, *number_lines(value), "};", ""]


def _compare(tables: Tables) -> list[str]:
    kinds = {r.tensor.dtype for r in tables.outputs}
    lines: list[str] = []
    for kind in _NEAR:
        if kind not in kinds:
            continue
        word, name = kind.c, _NEAR[kind]
        space = " " * len(f"static int {name}(")
        lines += [
            f"static int {name}(const {word} *a, const {word} *b, uint32_t n,",
            f"{space}{word} most)",
            "{",
            "    uint32_t i;",
            "",
            "    for (i = 0; i < n; i++) {",
            f"        const {word} d = a[i] - b[i];",
            "        if (a[i] != b[i] && !(d <= most && -d <= most) &&",
            "            !(a[i] != a[i] && b[i] != b[i]))",
            "            return 0;",
            "    }",
            "    return 1;",
            "}",
            "",
        ]
    if kinds & set(HALVES):
        lines += _HALVES
    if kinds - _NEAR.keys() - set(HALVES):
        lines += [
            "static int is_same(const void *a, const void *b, uint32_t bytes)",
            "{",
            "    const uint8_t *x = (const uint8_t *)a;",
            "    const uint8_t *y = (const uint8_t *)b;",
            "",
            "    while (bytes > 0u && *x == *y) {",
            "        bytes--;",
            "        x++;",
            "        y++;",
            "    }",
            "    return bytes == 0u;",
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
    if row.tensor.dtype in _NEAR:
        finite = np.abs(value[np.isfinite(value)])
        largest = float(finite.max()) if finite.size else 0.0
        most = f"{max(largest, 1e-6) * FLOAT_TOLERANCE:.3e}"
        most += "f" if row.tensor.dtype is DType.FLOAT32 else ""
        test = f"{_NEAR[row.tensor.dtype]}({have}, {want}, {value.size}u, {most})"
    elif row.tensor.dtype in HALVES:
        test = f"is_near_half({have}, {want}, {value.size}u)"
    else:
        test = f"is_same({have}, {want}, (uint32_t)sizeof {want})"
    return [f"    if (!{test})", "        return CRT_ERR_SELFTEST;"]
