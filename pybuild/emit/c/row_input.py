"""The generated C for inputs that arrive in rows: NAME_push_rows."""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.emit.tables.tables import Tables, TensorRow


def row_facts(row: TensorRow, index: int, prefix: str) -> list[str]:
    """Numbers of a pushed input, for NAME.h; [] of others."""
    if not row.rows:
        return []
    shape, form = row.tensor.shape, ""
    if len(shape) == 4 and shape[1] == row.rows:
        form = f", [{shape[2]},{shape[3]}]"
    return [
        f"/* The next one comes in rows: its number, and elements of a row{form}. */",
        f"#define {prefix}_INPUT {index}u",
        f"#define {prefix}_ROWS {row.rows}u",
        f"#define {prefix}_ROW_LEN {row.tensor.size // row.rows}u",
    ]


def push_declarations(tables: Tables) -> list[str]:
    """The declarations for NAME.h; [] if nothing is pushed."""
    if not tables.pushes:
        return []
    name = tables.name
    names = [f"{name.upper()}_{r.symbol.upper()}" for r in tables.inputs if r.rows]
    text = f"""\
/* Takes the next rows of an input and computes all that they allow; with the
 * last row the run is done, and {name}_run has nothing left to do but to say so
 * (before: CRT_ERR_INPUT_MISSING). See crt_graph_push_rows in crt/push.h.
 *
 * Shapes  input: {names[0]}_INPUT; rows[count][{names[0]}_ROW_LEN]
 * Owner   rows are copied
 * Errors  CRT_ERR_ROWS: more than are left; CRT_ERR_PUSHED: not such an input */
int {name}_push_rows(struct {name} *m, uint32_t input, const void *rows,
                     uint32_t count);

/* How many rows are needed before anything more can be computed; how many are
 * missing in this run: all before it begins, and so after its last row, too.
 * Negative: an error. */
int {name}_rows_wanted(const struct {name} *m, uint32_t input);
int {name}_rows_left(const struct {name} *m, uint32_t input);
"""
    return text.split("\n")


def run_body(tables: Tables) -> list[str]:
    """The body of NAME_run; if inputs are pushed, the last row has already run it."""
    name = tables.name
    if tables.pushes:
        return [f"    return crt_graph_pushed({name}_graph(m));"]
    return [
        f"    void *pointers[{tables.pointer_count}];",
        "",
        f"    return crt_graph_run({name}_graph(m), pointers);",
    ]


def push_whole(
    tables: Tables, inputs: Sequence[str], model: str, head: str
) -> list[str]:
    """A block that pushes inputs that are there as a whole.

    inputs  of each, where it is; model: before the name of its member
    """
    return [
        f"    {head}",
        f"        const void *rows[{len(inputs)}];",
        f"        void *pointers[{tables.pointer_count}];",
        "",
        *(f"        rows[{index}] = {name};" for index, name in enumerate(inputs)),
        f"        error = crt_graph_push_inputs(&{model}graph, pointers, rows);",
        "    }",
    ]


def push_definitions(tables: Tables) -> list[str]:
    """The definitions for NAME.c; [] if nothing is pushed."""
    if not tables.pushes:
        return []
    name = tables.name
    lines = [
        f"int {name}_push_rows(struct {name} *m, uint32_t input, const void *rows,",
        "                     uint32_t count)",
        "{",
        f"    void *pointers[{tables.pointer_count}];",
        "",
        f"    return crt_graph_push_rows({name}_graph(m), pointers, input, rows,",
        "                               count);",
        "}",
        "",
    ]
    for what in ("wanted", "left"):
        lines += [
            f"int {name}_rows_{what}(const struct {name} *m, uint32_t input)",
            "{",
            "    if (m == NULL)",
            "        return CRT_ERR_NULL;",
            f"    return crt_graph_rows_{what}(&m->graph, input);",
            "}",
            "",
        ]
    return lines
