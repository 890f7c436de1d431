"""The bytes of a .tflite file as plain values, every offset and size checked.

The one place that meets untrusted offsets: whatever is wrong with them is one
BuildError. Must not know what an operator means.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tflite
from flatbuffers.number_types import Int32Flags

from pybuild.errors import BuildError, fitting
from pybuild.records import dataclass
from pybuild.text.short_names import brief

Flat = Any  # a flatbuffers table of the package tflite, which has no types
T = TypeVar("T")

_NOT_VALID = "is not a valid TensorFlow Lite file"
_UNREADABLE = (
    struct.error, IndexError, ValueError, TypeError, KeyError, AttributeError,
    OverflowError, MemoryError, UnicodeDecodeError,
)  # fmt: skip
# operators that refer to subgraphs by their options
_CALLERS = {"CALL_ONCE", "IF", "STABLEHLO_COMPOSITE", "WHILE"}
_MOST = 200_000  # tensors or operators


@dataclass(frozen=True)
class FlatBlocks:
    """Scales of blocks along the last axis of a constant.

    scales, zero_points  numbers of tensors; zero_points 0 or below: there are none
    size, shape          values of a block; its extent along each axis, () if not given
    """

    scales: int
    zero_points: int
    size: int
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class FlatTensor:
    """A tensor as written; `data` is empty for computed tensors.

    blocks     of a constant with a scale for each block
    sparse     the table of dimensions of a constant stored without its zeros
    signature  the shape with -1 for open dimensions; empty: the same as shape
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
    sparse: Flat | None
    blocks: FlatBlocks | None = None


@dataclass(frozen=True)
class FlatOperator:
    """An operator as written; inputs and outputs are tensor indices, -1: absent.

    within  intermediate tensors, which only give scales
    calls   numbers of the subgraphs that it calls
    """

    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Flat | None
    within: tuple[int, ...] = ()
    custom: bytes = b""  # options of an operator that the format does not know
    calls: tuple[int, ...] = ()


@dataclass(frozen=True)
class FlatModel:
    """A subgraph of a file: the one that is run.

    subgraphs   all subgraphs of the file, for calls
    number      its index among them
    name        its name in the file
    signatures  of the file, if there are several: name -> number of its subgraph
    """

    tensors: tuple[FlatTensor, ...]
    operators: tuple[FlatOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: tuple[FlatModel, ...] = ()
    number: int = 0
    name: str = ""
    signatures: Mapping[str, int] = field(default_factory=dict)

    def called(self) -> set[int]:
        """Return the numbers of the subgraphs that its operators call."""
        return {number for operator in self.operators for number in operator.calls}


def names_of(enum: type) -> dict[int, str]:
    """Map the values of a flatbuffers enumeration to their names."""
    return {v: k for k, v in vars(enum).items() if isinstance(v, int)}


_CODES = names_of(tflite.BuiltinOperator)
_KINDS = {**names_of(tflite.TensorType), 19: "INT2", 20: "UINT4"}
_OPTIONS = names_of(tflite.BuiltinOptions)
_MORE_OPTIONS = names_of(tflite.BuiltinOptions2)
# what is newer than the package tflite: a member of QuantizationDetails, its fields
_BLOCKWISE = 2
_OF_BLOCKS = (4, 6, 8)
_SHAPE_OF_BLOCKS = 10
_BUILTIN_CODE = 10  # where the vtable of an operator's code has its new number


def read(source: str, data: bytes, signature: str = "") -> FlatModel:
    """Read the subgraph of a signature; "": of the only one.

    Errors  BuildError for anything but one whole .tflite model, for an unknown
            signature, and for "" if there are several
    """
    if len(data) < 8 or data[4:8] != b"TFL3":
        raise BuildError(source, _NOT_VALID, "its bytes 4 to 8 must be 'TFL3'")
    try:
        graphs, signatures = _graphs(data)
    except _UNREADABLE:
        hint = "it is truncated or damaged"
        raise BuildError(source, _NOT_VALID, hint) from None
    entries = signatures or _uncalled(graphs)
    what = "signatures" if signatures else "subgraphs that nothing calls"
    first = graphs[_chosen(source, entries, signature, what)]
    found = entries if len(entries) > 1 else {}
    return replace(first, subgraphs=graphs, signatures=found)


def _uncalled(graphs: tuple[FlatModel, ...]) -> dict[str, int]:
    """Map the name of each subgraph that no other one calls to its number."""
    called = {n for g in graphs for n in g.called() if n != g.number}
    found: dict[str, int] = {}
    for graph in graphs:
        if graph.number not in called:
            name = graph.name or f"subgraph_{graph.number}"
            taken = name in found
            found[f"{name}_{graph.number}" if taken else name] = graph.number
    return found or {"": 0}


def _chosen(source: str, entries: Mapping[str, int], signature: str, what: str) -> int:
    """Return the number of the chosen subgraph; what: the kind of entries, for
    messages."""
    if signature in entries:
        return entries[signature]
    names = [name for name in entries if name]
    if signature:
        hint = fitting(signature, names) if len(names) > 1 else "leave it out"
        raise BuildError("--signature", f"{source} has no '{signature}'", hint)
    if len(set(entries.values())) == 1:
        return next(iter(entries.values()))
    said = ", ".join(f"'{brief(name)}'" for name in names)
    hint = f"--signature {brief(names[0])} builds that one"
    raise BuildError(source, f"has {len(entries)} {what}: {said}", hint)


def guarded(source: str, read_options: Callable[[], T]) -> T:
    """Read options later with the same guarantee: damage raises one BuildError."""
    try:
        return read_options()
    except _UNREADABLE:
        hint = "it is truncated or damaged"
        raise BuildError(source, _NOT_VALID, hint) from None


def _graphs(data: bytes) -> tuple[tuple[FlatModel, ...], dict[str, int]]:
    """Return all subgraphs, and the numbers of those that signatures name."""
    model: Flat = tflite.Model.GetRootAs(data, 0)
    codes = [_code(c) for c in _each(data, model.OperatorCodesLength(),
                                     model.OperatorCodes)]  # fmt: skip
    buffers = _Buffers(data, model)
    graphs = tuple(
        replace(_graph(data, graph, buffers, codes), number=number)
        for number, graph in enumerate(
            _each(data, model.SubgraphsLength(), model.Subgraphs)
        )
    )
    signatures = {
        _text(one.SignatureKey()): one.SubgraphIndex()
        for one in _each(data, model.SignatureDefsLength(), model.SignatureDefs)
    }
    if not graphs or not all(n < len(graphs) for n in signatures.values()):
        raise ValueError(len(graphs))
    return graphs, signatures


def _graph(data: bytes, graph: Flat, buffers: _Buffers, codes: list[str]) -> FlatModel:
    tensors = _each(data, graph.TensorsLength(), graph.Tensors)
    operators = _each(data, graph.OperatorsLength(), graph.Operators)
    return FlatModel(
        tuple(_tensor(t, buffers) for t in tensors),
        tuple(_operator(o, codes) for o in operators),
        _indices(graph.InputsAsNumpy()),
        _indices(graph.OutputsAsNumpy()),
        name=_text(graph.Name()),
    )


def _each(data: bytes, count: int, item: Callable[[int], Flat]) -> Iterator[Flat]:
    """Yield the items of a vector of tables, each with an offset of 4 bytes."""
    if count < 0 or count * 4 > len(data) or count > _MOST:
        raise ValueError(count)
    for index in range(count):
        found = item(index)
        if found is None:
            raise ValueError(index)
        yield found


def _code(code: Flat) -> str:
    """Return an operator's name. ai-edge-quantizer sets the new number only, but
    BuiltinCode() of the package tflite takes numbers below 127 from the old field."""
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
    options, code = _options(operator), codes[index]
    named = dir(options) if code in _CALLERS else []
    return FlatOperator(
        code,
        _indices(operator.InputsAsNumpy()),
        _indices(operator.OutputsAsNumpy()),
        options,
        _indices(operator.IntermediatesAsNumpy()),
        _array(operator.CustomOptionsAsNumpy()).astype(np.uint8).tobytes(),
        tuple(getattr(options, n)() for n in named if n.endswith("SubgraphIndex")),
    )


def _options(operator: Flat) -> Flat | None:
    """Return the options as the type of table that the file declares."""
    table = operator.BuiltinOptions()
    name = _OPTIONS.get(operator.BuiltinOptionsType(), "NONE")
    if table is None:
        table = operator.BuiltinOptions2()
        name = _MORE_OPTIONS.get(operator.BuiltinOptions2Type(), "NONE")
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
        tensor.Sparsity(),
        _blocks(quant),
    )


def _blocks(quant: Flat | None) -> FlatBlocks | None:
    if quant is None or quant.DetailsType() != _BLOCKWISE:
        return None
    table = quant.Details()
    scales, zeros, size = (
        table.Get(Int32Flags, at + table.Pos) if at else 0
        for at in map(table.Offset, _OF_BLOCKS)
    )
    at = table.Offset(_SHAPE_OF_BLOCKS)
    shape = table.GetVectorAsNumpy(Int32Flags, at) if at else None
    return FlatBlocks(scales, zeros, size, _indices(shape))


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
    """Return a flatbuffers vector; tflite returns 0 for an absent one."""
    return found if isinstance(found, np.ndarray) else np.zeros(0, np.uint8)


def _indices(found: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in _array(found))


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", errors="replace")
