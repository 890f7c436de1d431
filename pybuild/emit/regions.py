"""What the generated C says of the memory of each device, and of devices.

A model on the CPU alone has one region, its arena, and no devices.
"""

from __future__ import annotations

from pybuild.emit.tables import Tables


def region_name(device: int) -> str:
    """The member of struct NAME_memory."""
    return f"device_{device}" if device else "arena"


def size_macro(tables: Tables, device: int) -> str:
    return f"{tables.name.upper()}_{region_name(device).upper()}_BYTES"


def macros(tables: Tables) -> list[str]:
    """The sizes, for NAME.h."""
    lines = ["/* Working memory: caller-owned, one per instance, aligned as below. */"]
    for size, device in tables.regions:
        lines.append(f"#define {size_macro(tables, device)} {size}u")
    upper = tables.name.upper()
    lines.append(f"#define {upper}_ARENA_ALIGN {tables.region_align}u")
    if tables.device_count > 1:
        lines += [
            "/* Entries of the table for set_devices, the CPU's included. */",
            f"#define {upper}_DEVICE_COUNT {tables.device_count}u",
        ]
    return [*lines, ""]


def memory(tables: Tables) -> list[str]:
    """struct NAME_memory and its initialiser, for NAME.h."""
    name, upper = tables.name, tables.name.upper()
    devices = [device for _, device in tables.regions if device]
    lines = [
        f"/* The memory that an instance lives in, for {name}_init. */",
        f"struct {name}_memory {{",
        *(f"    struct crt_region {region_name(d)};" for _, d in tables.regions),
        "};",
        "",
    ]
    if not devices:
        return [
            *lines,
            f"/* Initialises a struct {name}_memory from an array. */",
            f"#define {upper}_MEMORY(array) {{{{(array), (uint32_t)sizeof(array)}}}}",
            "",
        ]
    given = ", ".join(region_name(device) for device in devices)
    return [
        *lines,
        f"/* Initialises a struct {name}_memory from an array, and from addresses on",
        " * the devices that are good for as many bytes as they need. */",
        f"#define {upper}_MEMORY(array, {given}) \\",
        "    { \\",
        "        {(array), (uint32_t)sizeof(array)}, \\",
        *(
            f"        {{({region_name(d)}), {size_macro(tables, d)}}}, \\"
            for d in devices
        ),
        "    }",
        "",
    ]


def set_devices_declaration(tables: Tables) -> list[str]:
    """For NAME.h; [] for the CPU alone."""
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
    given = "&memory->arena"
    if count > 1:
        lines += [f"    struct crt_region regions[{count}];", ""]
        given = "regions"
    lines += ["    if (m == NULL || memory == NULL)", "        return CRT_ERR_NULL;"]
    if count > 1:
        lines += [
            f"    regions[{i}] = memory->{region_name(device)};"
            for i, (_, device) in enumerate(tables.regions)
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
