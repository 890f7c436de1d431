"""The pointers of a kernel that reads whole tensors: outputs, computed inputs, then
tables.
"""

from __future__ import annotations

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Var
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed


class NodeRows:
    """The computed ones of the first `count` inputs; tables in the order of requests.

    computed  names of tensors; tables  in the order of their pointers
    """

    def __init__(self, k: Builder, node: Node, graph: Graph, count: int) -> None:
        self.k, self.node, self.graph = k, node, graph
        self.computed = [n for n in node.inputs[:count] if n not in graph.constants]
        self.tables: list[Packed] = []

    @property
    def after(self) -> int:
        """The number of the next table's pointer."""
        return len(self.node.outputs) + len(self.computed) + len(self.tables)

    def source(self, index: int, name: str) -> Var:
        """Return a pointer to a computed or constant input."""
        tensor = self.graph.tensor(self.node.inputs[index])
        if tensor.name in self.computed:
            at = len(self.node.outputs) + self.computed.index(tensor.name)
            return self.k.row(name, at, tensor.dtype)
        return self.table(name, self.graph.constants[tensor.name])

    def table(self, role: str, array: Array, order: str = "row-major") -> Var:
        at = self.after
        self.tables.append(Packed(role, array, order=order))
        return self.k.row(role, at, DType.of(array))
