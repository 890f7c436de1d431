"""The bytes of a .tflite file as plain values, every offset and size checked.

The one place that meets untrusted offsets: whatever is wrong with them is one
BuildError. Must not know what an operator means.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tflite
from flatbuffers.number_types import Int32Flags

from pybuild.errors import BuildError
from pybuild.records import dataclass

Flat = Any  # a flatbuffers table of the package tflite, which has no types
T = TypeVar("T")

_NOT_VALID = "is not a valid TensorFlow Lite file"
_UNREADABLE = (
    struct.error, IndexError, ValueError, TypeError, KeyError, AttributeError,
    OverflowError, MemoryError, UnicodeDecodeError,
)  # fmt: skip
# operators that refer to subgraphs
CALLERS = {"CALL_ONCE", "IF", "WHILE"}
_MOST = 200_000  # tensors or operators


@dataclass(frozen=True)
class FlatTensor:
    """A tensor as written; `data` is empty where the value is computed.

    signature  the shape with -1 where it is open; empty: as shape
    """

    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    kind: str
    data: npt.NDArray[np.uint8]
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int
    variable: bool
    sparse: bool


@dataclass(frozen=True)
class FlatOperator:
    """An operator as written; inputs and outputs are tensor indices, -1: absent.

    within  tensors that have only scales, of what it computes inside
    """

    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Flat | None
    within: tuple[int, ...] = ()
    custom: bytes = b""  # options of an operator that the format does not know


@dataclass(frozen=True)
class FlatModel:
    """The first subgraph of a file; subgraphs: the others, for what calls them."""

    tensors: tuple[FlatTensor, ...]
    operators: tuple[FlatOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: tuple[FlatModel, ...] = ()


def names_of(enum: type) -> dict[int, str]:
    """Value -> name of a flatbuffers enumeration."""
    return {v: k for k, v in vars(enum).items() if isinstance(v, int)}


_CODES = names_of(tflite.BuiltinOperator)
_KINDS = names_of(tflite.TensorType)
_OPTIONS = names_of(tflite.BuiltinOptions)
_BUILTIN_CODE = 10  # where the vtable of an operator's code has its new number


def read(source: str, data: bytes) -> FlatModel:
    """Errors  BuildError for anything that is not one whole .tflite model"""
    if len(data) < 8 or data[4:8] != b"TFL3":
        raise BuildError(source, _NOT_VALID, "its bytes 4 to 8 must be 'TFL3'")
    try:
        return _model(source, data)
    except _UNREADABLE:
        hint = "it is truncated or damaged"
        raise BuildError(source, _NOT_VALID, hint) from None


def guarded(source: str, read_options: Callable[[], T]) -> T:
    """The same promise for what is read later: the options of an operator."""
    try:
        return read_options()
    except _UNREADABLE:
        hint = "it is truncated or damaged"
        raise BuildError(source, _NOT_VALID, hint) from None


def _model(source: str, data: bytes) -> FlatModel:
    model: Flat = tflite.Model.GetRootAs(data, 0)
    codes = [_code(c) for c in _each(data, model.OperatorCodesLength(),
                                     model.OperatorCodes)]  # fmt: skip
    count = model.SubgraphsLength()
    if count < 1 or (count > 1 and not CALLERS & set(codes)):
        what = f"has {count} subgraphs, only models of one are supported"
        raise BuildError(source, what, "convert one of its signatures")
    buffers = _Buffers(data, model)
    first, *others = (
        _graph(data, graph, buffers, codes)
        for graph in _each(data, count, model.Subgraphs)
    )
    return replace(first, subgraphs=tuple(others))


def _graph(data: bytes, graph: Flat, buffers: _Buffers, codes: list[str]) -> FlatModel:
    tensors = _each(data, graph.TensorsLength(), graph.Tensors)
    operators = _each(data, graph.OperatorsLength(), graph.Operators)
    return FlatModel(
        tuple(_tensor(t, buffers) for t in tensors),
        tuple(_operator(o, codes) for o in operators),
        _indices(graph.InputsAsNumpy()),
        _indices(graph.OutputsAsNumpy()),
    )


def _each(data: bytes, count: int, item: Callable[[int], Flat]) -> Iterator[Flat]:
    """The items of a vector of tables: 4 bytes of offset each."""
    if count < 0 or count * 4 > len(data) or count > _MOST:
        raise ValueError(count)
    for index in range(count):
        found = item(index)
        if found is None:
            raise ValueError(index)
        yield found


def _code(code: Flat) -> str:
    """ai-edge-quantizer sets the new number only, and BuiltinCode() of the package
    tflite takes a number below 127 from the old field alone.
    """
    table = code._tab
    at = table.Offset(_BUILTIN_CODE)
    new = table.Get(Int32Flags, at + table.Pos) if at else 0
    number = max(new, code.DeprecatedBuiltinCode())
    name = _CODES.get(number, f"operator {number}")
    if name == "CUSTOM":
        custom = code.CustomCode()
        return f"CUSTOM {_text(custom)}"
    return name


def _operator(operator: Flat, codes: list[str]) -> FlatOperator:
    index = operator.OpcodeIndex()
    if not 0 <= index < len(codes):
        raise ValueError(index)
    return FlatOperator(
        codes[index],
        _indices(operator.InputsAsNumpy()),
        _indices(operator.OutputsAsNumpy()),
        _options(operator),
        _indices(operator.IntermediatesAsNumpy()),
        _array(operator.CustomOptionsAsNumpy()).astype(np.uint8).tobytes(),
    )


def _options(operator: Flat) -> Flat | None:
    """The options as the table that the file says they are."""
    table = operator.BuiltinOptions()
    name = _OPTIONS.get(operator.BuiltinOptionsType(), "NONE")
    if table is None or name == "NONE" or not hasattr(tflite, name):
        return None
    options = getattr(tflite, name)()
    options.Init(table.Bytes, table.Pos)
    return options


def _tensor(tensor: Flat, buffers: _Buffers) -> FlatTensor:
    quant = tensor.Quantization()
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis = 0
    if quant is not None:
        scale = tuple(float(s) for s in _array(quant.ScaleAsNumpy()))
        zero_point = _indices(quant.ZeroPointAsNumpy())
        axis = quant.QuantizedDimension()
    return FlatTensor(
        _text(tensor.Name()),
        _indices(tensor.ShapeAsNumpy()),
        _indices(tensor.ShapeSignatureAsNumpy()),
        _KINDS.get(tensor.Type(), f"type {tensor.Type()}"),
        buffers.of(tensor.Buffer()),
        scale,
        zero_point,
        axis,
        bool(tensor.IsVariable()),
        tensor.Sparsity() is not None,
    )


class _Buffers:
    """The constant data of a file, as views of its bytes."""

    def __init__(self, data: bytes, model: Flat) -> None:
        self.data, self.model = data, model
        self.count = model.BuffersLength()

    def of(self, index: int) -> npt.NDArray[np.uint8]:
        if index == 0 and self.count == 0:
            return np.zeros(0, np.uint8)
        if not 0 <= index < self.count:
            raise ValueError(index)
        buffer = self.model.Buffers(index)
        offset, size = buffer.Offset(), buffer.Size()
        if offset > 1:
            if offset + size > len(self.data):
                raise ValueError(offset)
            return np.frombuffer(self.data, np.uint8, size, offset)
        return _array(buffer.DataAsNumpy()).astype(np.uint8, copy=False)


def _array(found: Any) -> npt.NDArray[Any]:
    """A flatbuffers vector; an absent one comes as 0."""
    return found if isinstance(found, np.ndarray) else np.zeros(0, np.uint8)


def _indices(found: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in _array(found))


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", errors="replace")
