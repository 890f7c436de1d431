"""firmware_model.h: what boards/common/runner.c is told of the model that it runs.

Knows the names of generated C; compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybuild.emit.regions import region_name, size_macro
from pybuild.emit.tables import LAZY, Tables, TensorRow

if TYPE_CHECKING:
    from pybuild.run.built import Library

_ALIGN = 16  # bytes: of memory that the runner has for tensors and packed weights


def model_header(library: Library) -> str:
    """The whole file."""
    tables = library.tables
    name, upper = tables.name, tables.name.upper()
    parts = [
        "/* firmware_model.h: made by pybuild: the model that runner.c runs. */",
        f'#include "{name}.h"',
        "",
        f"#define MODEL_ARENA_BYTES {upper}_ARENA_BYTES",
        f"#define MODEL_ARENA_ALIGN {upper}_ARENA_ALIGN",
        f"#define MODEL_STRUCT struct {name}",
        f"#define MODEL_MEMORY_STRUCT struct {name}_memory",
        f"#define MODEL_INIT {name}_init",
        f"#define MODEL_RUN {name}_run",
        *_devices(tables),
        *_parameters(tables),
        *_buffers(tables),
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


def _array(name: str, size: str) -> str:
    return f"static uint8_t {name}[{size}] __attribute__((aligned({_ALIGN})));"


def _devices(tables: Tables) -> Iterator[str]:
    upper = tables.name.upper()
    further = [device for _, device in tables.regions if device]
    arenas = ["arena", *(f"arena_{region_name(device)}" for device in further)]
    yield f"#define MODEL_MEMORY(arena) {upper}_MEMORY({', '.join(arenas)})"
    for device in further:
        yield _array(f"arena_{region_name(device)}", size_macro(tables, device))
    if tables.device_count > 1:
        yield f"#define MODEL_DEVICE_COUNT {upper}_DEVICE_COUNT"
        yield f"#define MODEL_SET_DEVICES {tables.name}_set_devices"
        yield f"#define MODEL_POINTERS {tables.pointer_count}"


def _parameters(tables: Tables) -> Iterator[str]:
    """They are an image in flash, which may be packed."""
    if not tables.parameters:
        return
    ram = ""
    if tables.unpacked_bytes:
        yield _array("unpacked", f"{tables.name.upper()}_UNPACKED_BYTES")
        ram = ", unpacked"
    yield f"#define MODEL_OPEN_PARAMS(params) {tables.name}_open_params(params{ram})"
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
    return bool(row.flags & LAZY or row.device)
