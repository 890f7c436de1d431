"""Tables, vectors and buffers of flatbuffers, as .tflite files have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite

from pybuild.dtype import Array

Flat = Any


def signature(b: Flat, name: str, number: int, parts: tuple[Any, ...]) -> int:
    tensors, _, *ends = parts
    maps = [
        [
            table(b, "TensorMap", Name=b.CreateString(tensors[i].name), TensorIndex=i)
            for i in end
        ]
        for end in ends
    ]
    key = b.CreateString(name)
    given, taken = (offsets(b, each) for each in maps)
    return table(
        b, "SignatureDef", Inputs=given, Outputs=taken, SignatureKey=key,
        SubgraphIndex=number,
    )  # fmt: skip


def table(b: Flat, name: str, **fields: Any) -> int:
    getattr(tflite, f"{name}Start")(b)
    for key, value in fields.items():
        getattr(tflite, f"{name}Add{key}")(b, value)
    return int(getattr(tflite, f"{name}End")(b))


def offsets(b: Flat, items: Sequence[int]) -> int:
    b.StartVector(4, len(items), 4)
    for item in reversed(items):
        b.PrependUOffsetTRelative(item)
    return int(b.EndVector())


def ints(b: Flat, values: Sequence[int], kind: type = np.int32) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, kind)))


def buffer(b: Flat, data: Array | None) -> int:
    if data is None:
        return table(b, "Buffer")
    raw = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
    b.StartVector(1, raw.size, 16)
    b.head = b.head - raw.size
    b.Bytes[b.head : b.head + raw.size] = raw.tobytes()
    return table(b, "Buffer", Data=int(b.EndVector()))


@dataclass(frozen=True)
class Sparse:
    """How a constant is kept without zeros; a level is a size, or (segments, indices).

    kind  of the indices: Uint8Vector, Uint16Vector, Int32Vector
    """

    order: tuple[int, ...]
    blocks: tuple[int, ...]
    levels: tuple[Any, ...]
    kind: str = "Int32Vector"


# numbers that the package tflite does not know
NEWER_TYPES = {"INT2": 19, "UINT4": 20}
_BLOCKWISE = 2


@dataclass(frozen=True)
class Blocks:
    """Scales of blocks: numbers of tensors, and the values of a block."""

    scales: int
    size: int
    zero_points: int = -1
    shape: tuple[int, ...] = ()


def quantisation(b: Flat, tensor: Any) -> int:
    """A tensor's table: scales, or blocks of them."""
    blocks = tensor.blocks
    if blocks:
        details = _blockwise(b, blocks)
        return table(
            b, "QuantizationParameters", Details=details, DetailsType=_BLOCKWISE
        )
    return table(
        b, "QuantizationParameters",
        Scale=b.CreateNumpyVector(np.asarray(tensor.scale, np.float32)),
        ZeroPoint=ints(b, tensor.zero_point, np.int64),
        QuantizedDimension=tensor.axis,
    )  # fmt: skip


def _blockwise(b: Flat, blocks: Blocks) -> int:
    shape = ints(b, blocks.shape) if blocks.shape else 0
    b.StartObject(4)
    for slot, number in enumerate((blocks.scales, blocks.zero_points, blocks.size)):
        b.PrependInt32Slot(slot, number, 0)
    if shape:
        b.PrependUOffsetTRelativeSlot(3, shape, 0)
    return int(b.EndObject())


def sparsity(b: Flat, sparse: Sparse) -> int:
    levels = []
    for level in sparse.levels:
        if isinstance(level, int):
            levels.append(table(b, "DimensionMetadata", Format=0, DenseSize=level))
            continue
        fields: dict[str, Any] = {}
        for name, values in zip(("Segments", "Indices"), level, strict=True):
            kind = {"Uint8Vector": np.uint8, "Uint16Vector": np.uint16}.get(
                sparse.kind, np.int32
            )
            held = ints(b, values, kind)
            fields[f"Array{name}"] = table(b, sparse.kind, Values=held)
            union = getattr(tflite.SparseIndexVector, sparse.kind)
            fields[f"Array{name}Type"] = union
        levels.append(table(b, "DimensionMetadata", Format=1, **fields))
    order, blocks = (ints(b, n) for n in (sparse.order, sparse.blocks))
    return table(
        b, "SparsityParameters", TraversalOrder=order, BlockMap=blocks,
        DimMetadata=offsets(b, levels),
    )  # fmt: skip
