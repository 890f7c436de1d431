"""The generated C for an input that takes a few samples at a time:
NAME_push_samples."""

from __future__ import annotations

from pybuild.emit.tables.tables import Tables, TensorRow


def _row(tables: Tables) -> tuple[int, TensorRow]:
    return next((i, row) for i, row in enumerate(tables.inputs) if row.sampled)


def sample_member(tables: Tables) -> str:
    """The member of struct NAME that says how many samples wait for the next run."""
    return "\n    uint32_t pushed;" * tables.sampled


def forgotten(tables: Tables) -> list[str]:
    """The code that forgets waiting samples when an instance starts over."""
    return ["    if (m != NULL)", "        m->pushed = 0;"] if tables.sampled else []


def sample_declarations(tables: Tables) -> list[str]:
    """The declarations for NAME.h; [] if no samples are pushed."""
    if not tables.sampled:
        return []
    name, (_, row) = tables.name, _row(tables)
    text = f"""\
/* Takes the next samples, any number of them, and computes all that they allow:
 * a run for each {row.tensor.size}. Outputs are those of the last run, and stay
 * while further samples come; whoever wants those of every run pushes no more
 * at once than {name}_samples_wanted says.
 *
 * Shapes  samples[count]
 * Returns how many runs were done, that is decisions made, from 0; or an error
 * Owner   samples are copied
 * Errors  CRT_ERR_NULL; those of {name}_run, after which samples not yet
 *         computed are forgotten */
int {name}_push_samples(struct {name} *m, const {row.tensor.dtype.c} *samples,
                        uint32_t count);

/* How many samples are missing until the next run; 0: there is no instance. */
uint32_t {name}_samples_wanted(const struct {name} *m);
"""
    return text.split("\n")


def sample_definitions(tables: Tables) -> list[str]:
    """The definitions for NAME.c; [] if no samples are pushed."""
    if not tables.sampled:
        return []
    name, (index, row) = tables.name, _row(tables)
    kind, size = row.tensor.dtype.c, row.tensor.size
    text = f"""\
uint32_t {name}_samples_wanted(const struct {name} *m)
{{
    return m == NULL ? 0u : {size}u - m->pushed;
}}

int {name}_push_samples(struct {name} *m, const {kind} *samples,
                        uint32_t count)
{{
    {kind} *to;
    uint32_t part;
    uint32_t i;
    int done = 0;
    int error;

    if (m == NULL || m->graph.model == NULL ||
        (samples == NULL && count != 0)) {{
        return CRT_ERR_NULL;
    }}
    if (m->graph.turn != NULL) {{ /* others would write over what waits */
        return CRT_ERR_STATE;
    }}
    to = ({kind} *)(void *)((uint8_t *)m->base[{row.region}] + {row.at});
    for (; count != 0; count -= part) {{
        part = {size}u - m->pushed;
        if (part > count) {{
            part = count;
        }}
        for (i = 0; i < part; i++) {{
            to[m->pushed + i] = samples[i];
        }}
        samples += part;
        m->pushed += part;
        if (m->pushed != {size}u) {{
            continue;
        }}
        m->pushed = 0;
        error = crt_graph_bind_input(&m->graph, {index}, NULL, 0);
        if (error == CRT_OK && crt_graph_input(&m->graph, {index}) != NULL) {{
            error = {name}_run(m);
        }}
        if (error != CRT_OK) {{
            return error;
        }}
        done++;
    }}
    return done;
}}
"""
    return text.split("\n")
