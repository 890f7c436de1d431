"""Quantised tensors that are unsigned in the file: here they are signed, and their zero
point is half the range lower.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.draft import SIGNED, Draft
from pybuild.ir.graph import Quant

_UNSIGNED = {signed: DType(kind) for kind, signed in SIGNED.items()}


def held(kind: str) -> DType:
    """Return the type that holds values of a type of the file."""
    return SIGNED.get(kind) or DType(kind)


def lift(kind: str) -> int:
    """Return what a value of the file is greater by than its twin: 128 of uint8, 32768
    of uint16, else 0."""
    return -SIGNED[kind].low if kind in SIGNED else 0


def kind_of(draft: Draft, name: str) -> str:
    """Return the type that a tensor has in the file."""
    dtype = draft.tensor(name).dtype
    return (_UNSIGNED[dtype] if name in draft.unsigned else dtype).value


def raised(quant: Quant, kind: str) -> Quant:
    """Return the quantisation in the file of a twin with this one."""
    zeros = tuple(z + lift(kind) for z in quant.zero_point)
    return replace(quant, zero_point=zeros)


def emit_unsigned(draft: Draft, name: str, output: str) -> None:
    """Emit what the file has as `output`: a twin's values in their unsigned type."""
    dtype = draft.tensor(name).dtype
    kind = _UNSIGNED[dtype]
    inner = draft.tensor(name).quant or Quant((1.0,), (dtype.low,))
    if kind is DType.UINT8:
        outer = raised(inner, kind.value)
        draft.emit("quantize", output, [name], output, dtype=kind, quant=outer)
        return
    _shifted(draft, name, output, lift(kind.value), kind)


def emit_twin(draft: Draft, name: str, quant: Quant) -> None:
    """Emit the signed twin of an input of the model."""
    tensor = draft.tensors[name]
    kind, signed = tensor.dtype.value, SIGNED[tensor.dtype.value]
    draft.tensors[name] = replace(tensor, quant=raised(quant, kind))
    made = draft.fresh(f"{name}.{signed.value}")
    if signed is DType.INT8:
        draft.emit("quantize", made, [name], made, dtype=signed, quant=quant)
    else:
        _shifted(draft, name, made, -lift(kind), signed)
        draft.tensors[made] = replace(draft.tensors[made], quant=quant)
    draft.inner[name] = made
    draft.unsigned.add(made)


def _shifted(draft: Draft, x: str, output: str, by: int, to: DType) -> None:
    """Emit x + by, in another type."""
    wide, moved = draft.fresh(f"{output}.wide"), draft.fresh(f"{output}.moved")
    number = draft.constant(f"{output}.half", np.asarray(by, np.int32))
    cast = {"fn": "cast", "to": DType.INT32.value}
    draft.emit("map", wide, [x], wide, cast, dtype=DType.INT32)
    draft.emit("map", moved, [wide, number], moved, {"fn": "add"}, dtype=DType.INT32)
    draft.emit("map", output, [moved], output, {**cast, "to": to.value}, dtype=to)
