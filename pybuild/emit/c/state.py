"""The generated C for state that is kept from run to run: NAME_save_state."""

from __future__ import annotations

from pybuild.emit.kernels.c import block_comment, fold
from pybuild.emit.tables.tables import Tables


def state_macro(tables: Tables) -> list[str]:
    """The size, for NAME.h; [] where nothing is kept."""
    if not tables.kept:
        return []
    upper = tables.name.upper()
    return [
        "/* What is kept from run to run takes so many bytes when it is saved; in the",
        " * instance it is in the memory above. */",
        f"#define {upper}_STATE_BYTES {tables.state_bytes}u",
        "",
        *_warm(tables),
    ]


def _warm(tables: Tables) -> list[str]:
    """The macro that says from which run on the results of a stream count."""
    if not tables.warm_runs:
        return []
    return [
        "/* Each run takes the newest frames of a window. From this run on, counted",
        " * from init or reset, results are those of the whole window. */",
        f"#define {tables.name.upper()}_WARM_RUNS {tables.warm_runs}u",
        "",
    ]


def state_declarations(tables: Tables) -> list[str]:
    """The declarations for NAME.h; [] if there is no state."""
    if not tables.kept:
        return []
    name, upper = tables.name, tables.name.upper()
    text = f"""\
/* Copies out all that is kept from run to run, and goes on from there later, on
 * this instance or another of this build; {name}_reset goes back to the beginning.
 *
 * Shapes  to, from: {upper}_STATE_BYTES bytes, at any address
 * Errors  CRT_ERR_STATE: damaged, half written or saved by another build;
 *         nothing is changed */
int {name}_save_state(const struct {name} *m, void *to);
int {name}_restore_state(struct {name} *m, const void *from);
"""
    return text.split("\n")


def state_definitions(tables: Tables) -> list[str]:
    """The definitions for NAME.c; [] if there is no state."""
    if not tables.kept:
        return []
    name, upper = tables.name, tables.name.upper()
    return [
        f"int {name}_save_state(const struct {name} *m, void *to)",
        "{",
        "    if (m == NULL)",
        "        return CRT_ERR_NULL;",
        f"    return crt_state_save(&m->graph, to, {upper}_STATE_BYTES);",
        "}",
        "",
        f"int {name}_restore_state(struct {name} *m, const void *from)",
        "{",
        *_restored(tables),
        "}",
        "",
    ]


def _restored(tables: Tables) -> list[str]:
    """Samples that wait are forgotten, unless what was saved is refused."""
    call = f"crt_state_restore({tables.name}_graph(m), from,"
    size = f"                             {tables.name.upper()}_STATE_BYTES);"
    if not tables.sampled:
        return [f"    return {call}", size]
    return [
        f"    const int error = {call}",
        f"      {size}",
        "",
        "    if (error == CRT_OK)",
        "        m->pushed = 0;",
        "    return error;",
    ]


def state_tables(tables: Tables) -> list[str]:
    """The tables that struct crt_model refers to; [] if there is no state."""
    if not tables.kept:
        return []
    name = tables.name
    numbers = f"{len(tables.kept)}, {tables.state_bytes}, {tables.state_id}u"
    rows = []
    for row in tables.kept:
        rows += [f"    {line}" for line in block_comment(row.comment)]
        where = f"{row.at}, {row.bytes}, {row.region}"
        rows += fold(f"    {{{row.initial or 'NULL'}, {where}}},")
    return [
        "/* initial, at, bytes, region */",
        f"static const struct crt_kept {name}_kept[] = {{",
        *rows,
        "};",
        "",
        f"static const struct crt_state {name}_keeps = {{",
        f"    crt_state_forget, {name}_kept, {numbers}}};",
        "",
    ]
