"""The generated C for regions of memory, and for devices.

A model on the CPU alone has one region, its arena, unless the user gives it others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.emit.kernels.c import block_comment
from pybuild.emit.tables.tables import RegionRow, Tables


def size_macro(tables: Tables, row: RegionRow) -> str:
    return f"{tables.name.upper()}_{row.name.upper()}_BYTES"


def macros(tables: Tables) -> list[str]:
    """The sizes, for NAME.h."""
    upper = tables.name.upper()
    lines = [
        "/* Working memory: caller-owned, one per instance, aligned as below, by",
        " * CRT_ALIGNED. Two models do not share it unless they are built together:",
        " * crt build ONE TWO --exclusive ONE,TWO. */",
    ]
    for row in tables.regions:
        note = f" /* {row.note} */" if row.note else ""
        lines.append(f"#define {size_macro(tables, row)} {row.bytes}u{note}")
    if tables.unused:
        lines.append(
            "/* Nothing of this model lies there: it is given no such memory. */"
        )
    for row in tables.unused:
        lines.append(f"#define {size_macro(tables, row)} 0u")
    lines.append(f"#define {upper}_ARENA_ALIGN {tables.region_align}u")
    if tables.device_count > 1:
        lines += [
            "/* Entries of the table for set_devices, the CPU's included. */",
            f"#define {upper}_DEVICE_COUNT {tables.device_count}u",
            "/* Pointers that a device needs to compute a step: crt_step_run. */",
            f"#define {upper}_POINTERS {tables.pointer_count}u",
        ]
    return [*lines, ""]


def memory(tables: Tables) -> list[str]:
    """struct NAME_memory and its initialiser, for NAME.h."""
    name = tables.name
    lines = [
        f"/* The memory that an instance lives in, for {name}_init. */",
        f"struct {name}_memory {{",
        *(f"    struct crt_region {row.name};" for row in tables.regions),
        "};",
        "",
    ]
    if tables.takes_arena:
        return [
            *lines,
            *from_array(name),
            "",
        ]
    arrays = ["array"] if tables.has_arena else [row.name for row in _own(tables)]
    given = [*arrays, *(row.name for row in tables.regions if row.device)]
    sizes = {r.name: size_macro(tables, r) for r in tables.regions if r.device}
    own = [size_macro(tables, row) for row in _own(tables)]
    least = dict(zip(arrays, own, strict=True)) if len(own) == len(arrays) else {}
    return [*lines, *initialiser(name, given, sizes, least), ""]


def from_array(name: str) -> list[str]:
    """NAME_MEMORY(array) of one arena, for NAME.h."""
    upper = name.upper()
    what = (
        f"A struct {name}_memory of an array of yours: uint8_t, static or automatic, "
        f"of {upper}_ARENA_BYTES or more, at a multiple of {upper}_ARENA_ALIGN "
        f"(else {name}_init returns CRT_ERR_ALIGN). One instance uses it, for as long "
        "as it is used. A pointer or a smaller array does not compile."
    )
    return [
        *block_comment(what),
        f"#define {upper}_MEMORY(array) \\",
        f"    {{{{(array), CRT_ROOM(array, {upper}_ARENA_BYTES)}}}}",
    ]


def _own(tables: Tables) -> list[RegionRow]:
    """The CPU's."""
    return [row for row in tables.regions if not row.device]


def initialiser(
    name: str,
    given: list[str],
    sizes: Mapping[str, str] | None = None,
    least: Mapping[str, str] | None = None,
) -> list[str]:
    """NAME_MEMORY(given): arrays of `least` bytes, and addresses of devices with their
    `sizes`."""
    there = sizes or {}
    what = "an array" if len(given) - len(there) == 1 else "arrays"
    head = f"A struct {name}_memory of {what} of yours"
    if there:
        head += ", and of addresses on the devices that are good for as many bytes as "
        head += "they need"
    one = "it" if what == "an array" else "them"
    lines = block_comment(
        f"{head}. One instance uses {one}, for as long as it is used."
    )
    rooms = {one: f"CRT_ROOM({one}, {size})" for one, size in (least or {}).items()}
    rooms = {**rooms, **there}
    pairs = ((one, rooms.get(one, f"sizeof({one})")) for one in given)
    return [
        *lines,
        *_folded_head(f"#define {name.upper()}_MEMORY(", given),
        "    { \\",
        *(f"        {{({one}), {size}}}, \\" for one, size in pairs),
        "    }",
    ]


def _folded_head(start: str, names: list[str]) -> list[str]:
    """`start` and the parameters of a macro, in lines of 80."""
    lines, now = [], start
    for index, name in enumerate(names):
        part = name + (")" if index == len(names) - 1 else ",")
        if len(now) + len(part) + 2 > 80:
            lines.append(f"{now.rstrip()} \\")
            now = "    "
        now += f"{part} "
    return [*lines, f"{now.rstrip()} \\"]


def set_devices_declaration(tables: Tables) -> list[str]:
    """The declaration of NAME_set_devices for NAME.h; [] if there is only the CPU."""
    name = tables.name
    if tables.device_count == 1:
        return []
    return [
        "/* Gives an instance its devices: after init, before anything else.",
        " *",
        f" * Shapes  devices[{name.upper()}_DEVICE_COUNT], the first is the CPU",
        " * Owner   the caller's; must outlive m",
        " * Errors  CRT_ERR_NULL, CRT_ERR_DEVICE */",
        f"int {name}_set_devices(struct {name} *m,",
        "    const struct crt_device *devices);",
        "",
    ]


def init_definition(tables: Tables) -> list[str]:
    """NAME_init and, for several devices, NAME_set_devices."""
    name, count = tables.name, len(tables.regions)
    lines = [f"int {name}_init(struct {name} *m, const struct {name}_memory *memory)"]
    lines.append("{")
    given = f"&memory->{tables.regions[0].name}"
    if count > 1:
        lines += [f"    struct crt_region regions[{count}];", ""]
        given = "regions"
    lines += ["    if (m == NULL || memory == NULL)", "        return CRT_ERR_NULL;"]
    lines += ["    m->pushed = 0;"] if tables.sampled else []
    if count > 1:
        lines += [
            f"    regions[{i}] = memory->{row.name};"
            for i, row in enumerate(tables.regions)
        ]
    lines += [
        f"    return crt_graph_init(&m->graph, &{name}_model, m->base, m->fresh,",
        f"        {given}, {count});",
        "}",
        "",
    ]
    if tables.device_count > 1:
        lines += [
            f"int {name}_set_devices(struct {name} *m,",
            "    const struct crt_device *devices)",
            "{",
            f"    return crt_graph_set_devices({name}_graph(m), devices,",
            f"        {name.upper()}_DEVICE_COUNT);",
            "}",
            "",
        ]
    return lines
