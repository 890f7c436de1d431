"""A table of float32 from which rows are gathered is float16 in flash, if each value is
one: the rows become float32 after they were gathered.
"""

from __future__ import annotations

from pybuild.dtype import DType, fits_half
from pybuild.ir.graph import Attr, Graph, Node
from pybuild.passes.edit import Edit

_WORTH = 1024  # bytes of flash that are worth a step
_FEW = 4  # times as many values as are gathered has a table


def narrow_tables(graph: Graph) -> Graph:
    """The graph with such tables."""
    found = {n.output for n in graph.nodes if _is_narrow(graph, n)}
    if not found:
        return graph
    edit, tables = Edit(graph), dict[str, str]()
    for node in graph.nodes:
        if node.output not in found:
            edit.keep(node)
            continue
        table, made = node.inputs[0], graph.tensor(node.output)
        if table not in tables:
            value = graph.constants[table].astype(DType.FLOAT16.numpy)
            tables[table] = edit.constant(f"{table}.halves", value)
        rows = edit.fresh(f"{node.output}.halves")
        source = (tables[table], edit.name(node.inputs[1]))
        gathered = Node("gather", node.name, source, (rows,), node.attrs)
        edit.emit(gathered, shape=made.shape, quant=None, dtype=DType.FLOAT16)
        attrs: dict[str, Attr] = {"fn": "cast", "to": DType.FLOAT32.value}
        cast = Node("map", node.name, (rows,), (made.name,), attrs)
        edit.emit(cast, shape=made.shape, quant=None, dtype=DType.FLOAT32)
    return edit.done()


def _is_narrow(graph: Graph, node: Node) -> bool:
    if node.op != "gather" or graph.is_placed or not graph.known(node.inputs[0]):
        return False
    table, made = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    many = table.bytes // 2 >= _WORTH and table.size >= _FEW * made.size
    real = table.dtype is DType.FLOAT32
    return real and many and fits_half(graph.constants[table.name])
