"""firmware_model.h: what boards/common/runner.c is told of the model that it runs.

Knows the names of generated C; compiles nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from pybuild.emit.c.regions import size_macro
from pybuild.emit.tables.tables import CONVERTED, LAZY, Tables, TensorRow

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

_ALIGN = 16  # bytes: of memory that the runner has for tensors and packed weights


def model_header(library: Library, memories: Collection[str] = ()) -> str:
    """The whole file.

    memories  of the board, by name: a region of such a name lies there, others in RAM
    """
    tables = library.tables
    name = tables.name
    parts = [
        "/* firmware_model.h: made by pybuild: the model that runner.c runs. */",
        f'#include "{name}.h"',
        "",
        f"#define MODEL_STRUCT struct {name}",
        f"#define MODEL_MEMORY_STRUCT struct {name}_memory",
        f"#define MODEL_INIT {name}_init",
        f"#define MODEL_RUN {name}_run",
        *_regions(tables, memories),
        *_devices(tables),
        *_cores(tables),
        *_parameters(tables),
        *_buffers(tables),
        *_rows_pushed(tables),
        "#ifdef RECORD",
        f"static const uint32_t model_row_bytes[] = {{{_rows(library)}}};",
        "#endif",
    ]
    return "\n".join([*parts, ""])


def _rows(library: Library) -> str:
    """Bytes of a row that each step writes; 0: it has no kernel."""
    candidates = [step.candidate for step in library.plan.steps]
    rows = (c.outputs[0].row_bytes if c.func is not None else 0 for c in candidates)
    return ", ".join(f"{size}u" for size in rows) or "0u"


def _array(name: str, size: str, section: str = "") -> str:
    words = f"aligned({_ALIGN})" + (f', section("{section}")' if section else "")
    return f"static uint8_t {name}[{size}] __attribute__(({words}));"


def arrays_of(tables: Tables) -> dict[str, str]:
    """The runner's array for each region, and the region's name."""
    rows = [row.name for row in tables.regions]
    return {name if name == "arena" else f"arena_{name}": name for name in rows}


def _regions(tables: Tables, memories: Collection[str]) -> Iterator[str]:
    arrays = arrays_of(tables)
    for row, array in zip(tables.regions, arrays, strict=True):
        section = f".region_{row.name}" if row.name in memories else ""
        yield _array(array, size_macro(tables, row), section)
    yield f"#define MODEL_ARRAYS {tables.name.upper()}_MEMORY({', '.join(arrays)})"


def _devices(tables: Tables) -> Iterator[str]:
    upper = tables.name.upper()
    if tables.device_count > 1:
        yield f"#define MODEL_DEVICES {upper}_DEVICE_COUNT"
        yield f"#define MODEL_SET_DEVICES {tables.name}_set_devices"
        yield f"#define MODEL_POINTERS {upper}_POINTERS"


def _cores(tables: Tables) -> Iterator[str]:
    if tables.cores > 1:
        yield f"#define MODEL_RUN_CORES {tables.name}_run_cores"
        yield f"#define MODEL_WORK {tables.name}_work"


def _parameters(tables: Tables) -> Iterator[str]:
    """They are an image in flash, which may be packed."""
    if not tables.parameters:
        return
    ram = "NULL"
    if tables.unpacked_bytes:
        yield _array("unpacked", f"{tables.name.upper()}_UNPACKED_BYTES")
        ram = "unpacked"
    yield f"#define MODEL_OPEN_PARAMS(params) {tables.name}_open_params(params, {ram})"
    yield f"#define MODEL_LOAD_PARAMS {tables.name}_load_params"


def _buffers(tables: Tables) -> Iterator[str]:
    """Memory of the runner for what the model has none for that the CPU could touch."""
    names = []
    for index, row in enumerate((*tables.inputs, *tables.outputs)):
        names.append(f"buffer_{index}" if _apart(row) else "0")
        if _apart(row):
            yield _array(f"buffer_{index}", f"{row.tensor.bytes}")
    if any(name != "0" for name in names):
        yield f"#define MODEL_BUFFERS {{{', '.join(names)}}}"


def _apart(row: TensorRow) -> bool:
    return bool(row.flags & (LAZY | CONVERTED) or row.device) and not row.rows


def _rows_pushed(tables: Tables) -> Iterator[str]:
    """How many rows each input has, 0 where it is not a pushed one."""
    if not tables.pushes:
        return
    pushed = [row for row in tables.inputs if row.rows]
    most = max(row.tensor.bytes // row.rows for row in pushed)
    counts = ", ".join(f"{row.rows}u" for row in tables.inputs)
    yield f"#define MODEL_PUSH_ROWS {tables.name}_push_rows"
    yield f"#define MODEL_ROW_BYTES {most}"
    yield f"#define MODEL_ROWS {sum(row.rows for row in pushed)}u"
    yield f"static const uint32_t model_rows[] = {{{counts}}};"
