"""A table of float32 from which rows are gathered is int8 in flash, if its values are
integers of a byte times a scale, or float16, if each value is one: the rows become
float32 after they were gathered.
"""

from __future__ import annotations

from pybuild.dtype import DType, fits_half
from pybuild.ir.graph import Attr, Graph, Node, Quant
from pybuild.passes.edit import Edit
from pybuild.passes.lookups.scaled import scaled_table
from pybuild.records import dataclass

_WORTH = 1024  # bytes of flash that are worth a step
_FEW = 4  # times as many values as are gathered has a table
_REAL: dict[str, Attr] = {"fn": "cast", "to": DType.FLOAT32.value}


@dataclass(frozen=True)
class _Table:
    """The name of its values: float16, or int8 with a scale, unless `scales` names one
    for each row."""

    values: str
    scales: str = ""


def narrow_tables(graph: Graph) -> Graph:
    """The graph with such tables."""
    edit, tables = Edit(graph), dict[tuple[str, bool], _Table | None]()
    for node in graph.nodes:
        found = None
        if _is_large(graph, node):
            key = node.inputs[0], int(node.attrs["axis"]) == 0
            if key not in tables:
                tables[key] = _narrow(edit, *key)
            found = tables[key]
        if found is None:
            edit.keep(node)
        else:
            _gather(edit, node, found)
    return edit.done() if any(tables.values()) else graph


def _is_large(graph: Graph, node: Node) -> bool:
    if node.op != "gather" or graph.is_placed or not graph.known(node.inputs[0]):
        return False
    table, made = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    many = table.bytes // 2 >= _WORTH and table.size >= _FEW * made.size
    return table.dtype is DType.FLOAT32 and many


def _narrow(edit: Edit, name: str, by_row: bool) -> _Table | None:
    """A narrow form of a table; None: it stays float32.

    by_row  whether its rows are what is gathered: then each may have a scale
    """
    value = edit.constants[name]
    found = scaled_table(value, by_row)
    if found is None:
        if not fits_half(value):
            return None
        halves = value.astype(DType.FLOAT16.numpy)
        return _Table(edit.constant(f"{name}.halves", halves))
    if found.scales.size == 1:
        quant = Quant((float(found.scales[0]),), (found.zero,))
        return _Table(edit.constant(f"{name}.bytes", found.numbers, quant))
    numbers = edit.constant(f"{name}.bytes", found.numbers)
    return _Table(numbers, edit.constant(f"{name}.scales", found.scales))


def _gather(edit: Edit, node: Node, table: _Table) -> None:
    """Gathered rows, then what makes them float32."""
    made, values = edit.old.tensor(node.output), edit.tensors[table.values]
    indices = edit.name(node.inputs[1])
    rows = _gathered(edit, node, table.values, indices)
    if values.quant is not None:
        last = Node("dequantize", node.name, (rows,), (made.name,))
        edit.emit(last, shape=made.shape)
        return
    if not table.scales:
        last = Node("map", node.name, (rows,), (made.name,), _REAL)
        edit.emit(last, shape=made.shape)
        return
    real, column = (edit.fresh(f"{made.name}.{n}") for n in ("real", "column"))
    edit.emit(Node("map", real, (rows,), (real,), _REAL), shape=made.shape)
    scales = _gathered(edit, node, table.scales, indices)
    each = edit.tensors[indices].shape
    each = (*each, *(1,) * (len(made.shape) - len(each)))
    edit.emit(Node("reshape", column, (scales,), (column,)), shape=each)
    attrs: dict[str, Attr] = {"fn": "multiply"}
    last = Node("map", node.name, (real, column), (made.name,), attrs)
    edit.emit(last, shape=made.shape)


def _gathered(edit: Edit, node: Node, table: str, indices: str) -> str:
    """The rows of another table at the same places."""
    x = edit.tensors[table]
    rows = edit.fresh(f"{node.output}.{table.rpartition('.')[2]}")
    made = Node("gather", rows, (table, indices), (rows,), node.attrs)
    return edit.emit(made, quant=x.quant, dtype=x.dtype)
