"""The generated C for several equal cores: NAME_run_cores and NAME_work."""

from __future__ import annotations

from pybuild.emit.c.tables import table
from pybuild.emit.tables.tables import Tables


def slice_tables(tables: Tables) -> list[str]:
    """The arguments of each core; [] for one core."""
    if tables.cores == 1:
        return []
    name, rows = tables.name, []
    for number, step in enumerate(tables.steps):
        given = [f"&{name}_args[{at}]" for at in step.slices]
        rows += [f"    /* step {number} {step.layer} */"]
        rows += [f"    {one}," for one in given or ["NULL"] * tables.cores]
    return [
        "/* What each core finds in a[] for its slice of a step; NULL: the first core",
        " * computes all of it. */",
        *table(f"int32_t *const {name}_slice_args[]", rows),
        f"const struct crt_slices {name}_slices = {{",
        f"    {name}_slice_args, {tables.cores}",
        "};",
        "",
    ]


def cores_declarations(tables: Tables) -> list[str]:
    """The declarations for NAME.h; [] for one core."""
    if tables.cores == 1:
        return []
    name = tables.name
    text = f"""\
/* How many equal cores compute a run together, the first included. */
#define {name.upper()}_CORES {tables.cores}u

extern const struct crt_slices {name}_slices;

/* Runs the model once on all of them, with the bits of {name}_run, which runs
 * it on one. Call it on the first core; the others are in {name}_work.
 *
 * Owner   cores is the caller's, one for each instance: zeroed, or static
 * Thread  one per instance
 * Errors  as {name}_run; CRT_ERR_CORE: see crt_cores_run in crt/cores.h */
int {name}_run_cores(struct {name} *m, struct crt_cores *cores);

/* Takes part in one run, as core 1, 2, ...: call it in a loop, from when the
 * instance is initialised.
 *
 * Errors  see crt_cores_work in crt/cores.h */
int {name}_work(struct {name} *m, struct crt_cores *cores, uint32_t core);
"""
    return text.split("\n")


def cores_definitions(tables: Tables) -> list[str]:
    """The definitions for NAME.c; [] for one core."""
    if tables.cores == 1:
        return []
    name, count = tables.name, tables.pointer_count
    text = f"""\
int {name}_run_cores(struct {name} *m, struct crt_cores *cores)
{{
    void *pointers[{count}];

    return crt_cores_run({name}_graph(m), cores, &{name}_slices, pointers);
}}

int {name}_work(struct {name} *m, struct crt_cores *cores, uint32_t core)
{{
    void *pointers[{count}];

    return crt_cores_work({name}_graph(m), cores, &{name}_slices, pointers,
                          core);
}}
"""
    return text.split("\n")
