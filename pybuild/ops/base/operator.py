"""The definition of every operator: its shapes, its numpy meaning, its cost.

Must not know files, kernels or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.records import dataclass

Shape = tuple[int, ...]
Types = tuple[tuple[Shape, DType], ...]
Values = Sequence[Array | None]
# the arithmetic of reference(): numpy's own mixture of types
Numbers = npt.NDArray[Any]

NO_CLAMP: tuple[float | None, float | None] = (None, None)
BYTES = (DType.INT8, DType.UINT8)
# quantised numbers that layers compute with
WHOLE = (DType.INT8, DType.INT16)


@dataclass(frozen=True)
class Operator:
    """The meaning of one operator of the Graph IR.

    infer      shape and type of each output; BuildError where a node is invalid
    reference  the values of the outputs, from those of the inputs
    macs       multiply-accumulates of what has weights, else 0
    """

    infer: Callable[[Node, Graph], Types]
    reference: Callable[[Node, Graph, Values], tuple[Array, ...]]
    macs: Callable[[Node, Graph], int]


def invalid(node: Node, graph: Graph, what: str, hint: str = "") -> BuildError:
    """The error of a node that means nothing or that we cannot do."""
    return BuildError(graph.where(node), what, hint)


def operand(node: Node, graph: Graph, index: int) -> Tensor:
    """The tensor of an input that must be there."""
    if index >= len(node.inputs) or not node.inputs[index]:
        raise invalid(node, graph, f"input {index} is missing")
    return graph.tensor(node.inputs[index])


def optional(node: Node, graph: Graph, index: int) -> Tensor | None:
    """The tensor of an input that may be absent."""
    if index >= len(node.inputs) or not node.inputs[index]:
        return None
    return graph.tensor(node.inputs[index])


def must_have_shape(
    node: Node, graph: Graph, tensor: Tensor, shape: tuple[int, ...]
) -> None:
    """Checks the shape of a tensor.

    Errors  BuildError for another one
    """
    if tensor.shape != shape:
        what = f"'{tensor.name}' is {list(tensor.shape)}, not {list(shape)}"
        raise invalid(node, graph, what)


def must_have_type(node: Node, graph: Graph, tensor: Tensor, dtype: DType) -> None:
    """Checks the type of a tensor.

    Errors  BuildError for another one
    """
    if tensor.dtype is not dtype:
        what = f"'{tensor.name}' is {tensor.dtype.value}, not {dtype.value}"
        raise invalid(node, graph, what)


def value(values: Values, index: int) -> Numbers:
    """The value of an input that must be there."""
    found = values[index]
    assert found is not None, index
    return found


def same_types(node: Node, graph: Graph, *tensors: Tensor) -> DType:
    """The one type of all these tensors: float32, quantised int8 or int16."""
    kinds = {t.dtype for t in tensors}
    if len(kinds) > 1:
        names = ", ".join(sorted(k.value for k in kinds))
        raise invalid(node, graph, f"mixes element types {names}")
    for tensor in tensors:
        computable(node, graph, tensor)
    return tensors[0].dtype


def computable(node: Node, graph: Graph, tensor: Tensor, zero: bool = False) -> DType:
    """The type of what arithmetic may read: float32, quantised int8 or int16.

    zero  int16 may have a zero point
    """
    if tensor.dtype in WHOLE:
        if tensor.quant is None:
            what = f"'{tensor.name}' is {tensor.dtype.value} without a scale"
            raise invalid(node, graph, what, "quantise the model with scales")
        shifted = any(tensor.quant.zero_point) and not zero
        if tensor.dtype is DType.INT16 and shifted:
            what = f"'{tensor.name}' is int16 with a zero point"
            raise invalid(node, graph, what, "quantise int16 symmetrically")
    elif tensor.dtype is not DType.FLOAT32:
        what = f"'{tensor.name}' is {tensor.dtype.value}, which is not supported here"
        raise invalid(node, graph, what, "use int8 or float32")
    return tensor.dtype


def whole_quant(node: Node, graph: Graph, tensor: Tensor) -> None:
    """An activation has one scale for all of it.

    Errors  BuildError if it has none, or one per channel
    """
    if tensor.quant is None:
        raise invalid(node, graph, f"'{tensor.name}' has no scale")
    if len(tensor.quant.scale) != 1 or len(tensor.quant.zero_point) != 1:
        what = f"'{tensor.name}' has a scale per channel"
        raise invalid(node, graph, what, "only weights may have one")


def rounding(node: Node) -> str:
    """The rounding rule of a node: "double" | "away" | "single" | "even"."""
    return str(node.attrs.get("rounding", "double"))


def ratio(node: Node, x: Tensor, y: Tensor, factor: float = 1.0) -> float:
    """The ratio of x's scale to y's: in float32, or by `wide` in float64."""
    factor = float(np.float32(factor))
    if node.attrs.get("wide", False):
        return x.scale * factor / y.scale
    with np.errstate(over="ignore"):
        return float(np.float32(x.scale) * np.float32(factor) / np.float32(y.scale))


def clamp_of(node: Node) -> tuple[float | None, float | None]:
    """The fused activation as real bounds."""
    low, high = node.attrs.get("clamp", NO_CLAMP)
    return low, high


def clamped(node: Node, y: Numbers) -> Numbers:
    """Float values held within the fused activation."""
    low, high = clamp_of(node)
    if low is not None:
        y = np.maximum(y, np.float32(low))
    return y if high is None else np.minimum(y, np.float32(high))


def nothing(node: Node, graph: Graph) -> int:
    """The cost of what does not multiply and add."""
    return 0
