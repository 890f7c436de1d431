"""Prints NAME_predict: inputs in, outputs out, for callers that keep no instance.

Over the other functions of the header; knows nothing of tables or kernels.
"""

from __future__ import annotations

from pybuild.emit.c.row_input import push_whole
from pybuild.emit.tables.tables import Tables, TensorRow


def declarations(tables: Tables) -> list[str]:
    """The part of NAME.h."""
    name = tables.name
    told = [
        " * Inputs are read and outputs written where they are, aligned as above; an",
        " * output that is NULL is not wanted.",
    ]
    if any(row.device for row in (*tables.inputs, *tables.outputs)):
        told.append(" * Those on devices are copied there, and from there.")
    lines = ["/* Where one run finds its inputs and puts its outputs. */"]
    members = [f"const {_pointer(row)}" for row in tables.inputs]
    if tables.parameters:
        members.append("const void *const *parameters")
        told += [
            f" * parameters: {len(tables.parameters)} pointers, each to the bytes of a",
            " * parameter as its layout says (crt_graph_parameter of an instance).",
        ]
    lines += _struct(f"{name}_inputs", members)
    lines += _struct(f"{name}_outputs", [_pointer(row) for row in tables.outputs])
    where = "arena" if tables.takes_arena else "memory"
    lines += [
        f"/* Runs the model once in `{where}`, without an instance: that is on the",
        " * stack, and nothing is kept.",
        " *",
        *told,
        " *",
        *_memory_told(tables),
        " * Owner   all memory is the caller's, and free again afterwards",
        " * Thread  any number at once, each with an arena and outputs of its own",
        " * Errors  CRT_ERR_NULL, CRT_ERR_ALIGN; CRT_ERR_INPUT_MISSING: one is NULL;",
        " *         CRT_ERR_OVERLAP: one is in the arena */",
    ]
    return [*lines, *_head(tables, ";"), ""]


def definition(tables: Tables) -> list[str]:
    """The part of NAME.c."""
    name = tables.name
    given, devices = "&memory", []
    if tables.takes_arena:
        devices = [
            f"    const struct {name}_memory memory = {{{{arena,",
            f"        {name.upper()}_ARENA_BYTES}}}};",
        ]
    else:
        given = "memory"
    lines = [
        *_head(tables, ""),
        "{",
        f"    struct {name} m;",
        *devices,
        "    int error;",
        *(["    uint32_t i;"] if tables.parameters else []),
        "",
        "    if (inputs == NULL || outputs == NULL)",
        "        return CRT_ERR_NULL;",
        f"    error = {name}_init(&m, {given});",
    ]
    if tables.device_count > 1:
        lines += [
            "    if (error == CRT_OK)",
            f"        error = {name}_set_devices(&m, devices);",
        ]
    for role, rows in (("inputs", tables.inputs), ("outputs", tables.outputs)):
        for row in rows:
            if row.device:
                lines += _sent(row, name) if role == "inputs" else []
            if row.rows or row.device:
                continue
            lines += [
                "    if (error == CRT_OK)",
                *_constness(role),
                f"        error = {name}_bind_{row.symbol}(&m,",
                f"            {role}->{row.symbol});",
            ]
    if tables.parameters:
        lines += _parameters(len(tables.parameters))
    if tables.pushes:
        values = [f"inputs->{row.symbol}" for row in tables.inputs]
        lines += push_whole(tables, values, "m.", "if (error == CRT_OK) {")
    away = [row for row in tables.outputs if row.device]
    if not away:
        last = [f"    return error == CRT_OK ? {name}_run(&m) : error;"]
    else:
        last = ["    if (error == CRT_OK)", f"        error = {name}_run(&m);"]
        last += [line for row in away for line in _fetched(row, tables)]
        last.append("    return error;")
    return [*lines, *last, "}", ""]


def _constness(role: str) -> list[str]:
    """The struct of outputs is const, what it points to is not."""
    told = "        /* MISRA 11.8: outputs is const, not what it points to */"
    return [told] if role == "outputs" else []


def _sent(row: TensorRow, name: str) -> list[str]:
    """An input to the memory of its device."""
    return [
        f"    if (error == CRT_OK && inputs->{row.symbol} == NULL)",
        "        error = CRT_ERR_INPUT_MISSING;",
        "    if (error == CRT_OK)",
        f"        error = {name}_set_{row.symbol}(&m, inputs->{row.symbol});",
    ]


def _fetched(row: TensorRow, tables: Tables) -> list[str]:
    """An output from the memory of its device."""
    index = tables.outputs.index(row)
    return [
        f"    if (error == CRT_OK && outputs->{row.symbol} != NULL)",
        f"        error = crt_graph_get_output(&m.graph, {index}u,",
        f"            outputs->{row.symbol}, {row.tensor.bytes}u);",
    ]


def _memory_told(tables: Tables) -> list[str]:
    upper = tables.name.upper()
    if tables.takes_arena:
        return [
            f" * Units   arena: {upper}_ARENA_BYTES, aligned to {upper}_ARENA_ALIGN"
        ]
    if tables.device_count == 1:
        return [f" * Units   memory: as {tables.name}_init wants it"]
    return [f" * Shapes  devices[{upper}_DEVICE_COUNT], the first is the CPU"]


def _head(tables: Tables, end: str) -> list[str]:
    name = tables.name
    devices = ["    const struct crt_device *devices,"] * (tables.device_count > 1)
    if not tables.takes_arena:
        return [
            f"int {name}_predict(const struct {name}_memory *memory,",
            *devices,
            f"    const struct {name}_inputs *inputs,",
            f"    const struct {name}_outputs *outputs){end}",
        ]
    return [
        f"int {name}_predict(void *arena, const struct {name}_inputs *inputs,",
        f"    const struct {name}_outputs *outputs){end}",
    ]


def _pointer(row: TensorRow) -> str:
    return f"{row.tensor.dtype.c} *{row.symbol}"


def _struct(name: str, members: list[str]) -> list[str]:
    some = members or ["const void *none"]  # C has no empty structs
    return [f"struct {name} {{", *(f"    {m};" for m in some), "};", ""]


def _parameters(count: int) -> list[str]:
    return [
        "    if (error == CRT_OK && inputs->parameters == NULL)",
        "        error = CRT_ERR_UNBOUND;",
        f"    for (i = 0; error == CRT_OK && i < {count}u; i++)",
        "        error = crt_graph_bind_parameter(&m.graph, i,",
        "            inputs->parameters[i],",
        "            crt_graph_parameter_info(&m.graph, i)->bytes);",
    ]
