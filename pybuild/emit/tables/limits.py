"""The limits of the numbers in crt/abi.h: a model that needs more is refused, because a
truncated number would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from pybuild.emit.tables.tables import StepRow, Tables
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.ops.base.signatures import WHEN_SET
from pybuild.plan.plan import Step

_BYTE, _HALF, _HALF_SIGNED, _WORD = 0xFF, 0xFFFF, 0x7FFF, 0xFFFFFFFF
CONVERT_POINTERS = 8  # CRT_CONVERT_POINTERS
_PARTS = ("outputs", "inputs", "constants", "pieces of scratch")


def step_must_fit(step: Step, row: StepRow, graph: Graph) -> None:
    """Checks that a step fits the step table.

    Errors  BuildError naming the layer
    """
    c = step.candidate
    accesses = (*c.outputs, *c.inputs)
    hint = "split the input, or swap its height and width"
    rows = [n for a in accesses for n in (a.rows, a.window, a.stride)]
    checks = [
        (max(c.images, c.bands, *rows), _HALF, "rows or images", hint),
        (max((abs(a.pad) for a in accesses), default=0), _HALF_SIGNED,
         "rows of padding", hint),
        (sum(a.window for a in accesses) + row.counts[2] + row.counts[3], _HALF,
         "rows at once", hint),
    ]  # fmt: skip
    if step.node.attrs.get(WHEN_SET):  # crt/convert.h; inputs are set in any order
        pointers, hint = sum(a.window for a in accesses) + row.counts[2], "--input keep"
        checks += [(pointers, CONVERT_POINTERS, "rows at once", hint),
                   (row.counts[3], 0, "pieces of scratch", hint)]  # fmt: skip
    for count, what in zip(row.counts, _PARTS, strict=True):
        checks.append((count, _BYTE, what, "join some of them in a layer before"))
    where = graph.where(step.node)
    for number, most, what, hint in checks:
        if number > most:
            text = f"{number} {what} do not fit the step table, at most {most}"
            raise BuildError(where, text, hint)


def must_fit(tables: Tables) -> None:
    """Checks that the tables fit the types of crt/abi.h.

    Errors  BuildError naming the model
    """
    t, hint = tables, "split the model"
    # a step that fails is remembered as int16; regions and devices are counted in bytes
    counts = [
        (len(t.steps), _HALF_SIGNED, "steps"),
        (len(t.rows), _HALF, "patterns of rows"),
        (len(t.links), _HALF, "waits between layers"),
        (t.base_count, _HALF, "inputs, outputs and parameters"),
        (max(len(t.regions), t.device_count), _BYTE, "regions or devices"),
        (_most_bytes(t), _WORD, "bytes of memory"),
    ]
    for number, most, what in counts:
        if number > most:
            text = f"{number} {what} do not fit the tables, at most {most}"
            raise BuildError(t.name, text, hint)


def _most_bytes(tables: Tables) -> int:
    sizes: Iterable[int] = (
        *(region.bytes for region in tables.regions),
        *(row.tensor.bytes for row in tables.tensors),
        *(rows.row_bytes for rows in tables.rows),
        *(operand.at for operand in tables.operands),
    )
    return max(sizes, default=0)
