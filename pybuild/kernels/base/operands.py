"""The operands of kernels without a window: whole tensors, or row by row.

Constant inputs become tables; the pointer numbers follow crt's order (outputs,
inputs, constants). Knows no operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import (
    Candidate,
    Packed,
    RowAccess,
    by_rows,
    whole,
)
from pybuild.records import dataclass

# a band of fewer elements is not worth a call
SMALLEST_BAND = 16
# crt counts images and bands in 16 bits
MOST_BANDS = 65535
_SHORT = {
    DType.BOOL: "s8", DType.INT8: "s8", DType.UINT8: "u8", DType.INT16: "s16",
    DType.INT32: "s32", DType.INT64: "s64", DType.FLOAT32: "f32",
    DType.UINT16: "u16", DType.UINT32: "u32", DType.UINT64: "u64",
    DType.FLOAT64: "f64", DType.FLOAT16: "f16", DType.BFLOAT16: "bf16",
}  # fmt: skip


def short(dtype: DType) -> str:
    """Return the short name of a type for kernel names."""
    return _SHORT[dtype]


@dataclass(frozen=True)
class Operands:
    """The tensors of one node in the form its kernel takes them.

    numbers  pointer of each input of the node
    """

    output: RowAccess
    inputs: tuple[RowAccess, ...]
    constants: tuple[Packed, ...]
    numbers: tuple[int, ...]
    images: int = 1
    bands: int = 1

    @property
    def after(self) -> int:
        """The number of the first pointer after these."""
        return 1 + len(self.inputs) + len(self.constants)


def whole_operands(node: Node, graph: Graph) -> Operands:
    """Return the operands of a single call on whole tensors."""
    inputs = tuple(whole(graph.tensor(n)) for n in _computed(node, graph))
    return _operands(node, graph, whole(graph.tensor(node.output)), inputs, (1, 1))


def row_operands(node: Node, graph: Graph) -> Operands:
    """Return the operands of calls row by row; a tensor of height 1 is the same in each
    call."""
    y = graph.tensor(node.output)
    inputs = tuple(_row(graph.tensor(n)) for n in _computed(node, graph))
    return _operands(node, graph, by_rows(y), inputs, y.shape[:2])


def can_go_by_rows(node: Node, graph: Graph) -> bool:
    """Return True if each row of the output [N,H,W,C] needs just the same row of the
    inputs."""
    y = graph.tensor(node.output)
    if len(y.shape) != 4 or y.shape[1] == 1 or max(y.shape[:2]) > MOST_BANDS:
        return False
    if y.shape[2] * y.shape[3] < SMALLEST_BAND:
        return False
    for name in node.inputs:
        images, height = _padded(graph.tensor(name).shape)[:2]
        broadcast = height == 1 and images == 1
        follows = images == y.shape[0] and height == y.shape[1]
        if not broadcast and (name in graph.constants or not follows):
            return False
    return True


def elementwise_operands(node: Node, graph: Graph) -> Operands:
    """Return the operands by rows if that is possible and worthwhile, else as
    wholes."""
    if can_go_by_rows(node, graph):
        return row_operands(node, graph)
    return whole_operands(node, graph)


def inner_shape(tensor: Tensor, operands: Operands, rank: int) -> tuple[int, ...]:
    """Return the shape of the part of a tensor that one call sees, extended to `rank`
    axes."""
    shape = (1,) * (rank - len(tensor.shape)) + tensor.shape
    return shape[2:] if operands.bands > 1 else shape


def offer(
    k: Builder,
    operands: Operands,
    *,
    tables: Sequence[Packed] = (),
    in_place: tuple[int, ...] = (),
    ordered: bool = False,
    cost: int = 0,
) -> Candidate:
    """Return the candidate of a finished builder; `tables` follow the node's
    constants."""
    return Candidate(
        func=k.finish(in_place=bool(in_place), ordered=ordered),
        args=tuple(k.values),
        outputs=(operands.output,),
        inputs=operands.inputs,
        constants=(*operands.constants, *tables),
        images=operands.images,
        bands=operands.bands,
        in_place=in_place,
        cost=cost,
    )


def _computed(node: Node, graph: Graph) -> list[str]:
    return [n for n in node.inputs if n not in graph.constants]


def _operands(
    node: Node,
    graph: Graph,
    output: RowAccess,
    inputs: tuple[RowAccess, ...],
    calls: tuple[int, ...],
) -> Operands:
    constants: list[Packed] = []
    numbers = []
    computed = 0
    for name in node.inputs:
        if name in graph.constants:
            numbers.append(1 + len(inputs) + len(constants))
            constants.append(Packed("values", graph.constants[name], order="row-major"))
        else:
            computed += 1
            numbers.append(computed)
    images, bands = calls
    return Operands(output, inputs, tuple(constants), tuple(numbers), images, bands)


def _padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (4 - len(shape)) + shape


def _row(tensor: Tensor) -> RowAccess:
    images, height = _padded(tensor.shape)[:2]
    if height == 1 and images == 1:
        return whole(tensor)
    return RowAccess(tensor.name, height, tensor.bytes // (images * height))
