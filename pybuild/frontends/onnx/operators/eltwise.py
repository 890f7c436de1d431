"""Elementwise layers: arithmetic, activations, batch normalisation, softmax, mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Quant
from pybuild.ops.fixed_point.quant import dequantized

_SAME = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Sigmoid": "logistic", "Tanh": "tanh",
}  # fmt: skip


def same(draft: Draft, op: Op) -> None:
    """Emit an operator that exists in the graph IR too, without attributes."""
    draft.emit(_SAME[op.kind], op.name, op.inputs, op.output)


def div(draft: Draft, op: Op) -> None:
    """Emit a division by a constant as a multiplication."""
    divisor = draft.known(op.input(1))
    if divisor is None:
        what = f"its divisor '{op.input(1)}' is computed by the model"
        raise op.invalid(what, "only division by a constant is supported")
    if divisor.dtype != np.float32 or not np.all(divisor):
        raise op.invalid("its divisor is zero or not float32")
    factor = (1.0 / divisor.astype(np.float64)).astype(np.float32)
    name = draft.constant(f"{op.input(1)}.inverse", factor)
    draft.emit("mul", op.name, [op.input(0), name], op.output)


def relu(draft: Draft, op: Op) -> None:
    draft.emit("clip", op.name, [op.input(0)], op.output, {"clamp": (0.0, None)})


def clip(draft: Draft, op: Op) -> None:
    """Clip, with bounds as attributes (to opset 10) or constant inputs."""
    bounds = [_bound(draft, op, i, key) for i, key in ((1, "min"), (2, "max"))]
    attrs = {"clamp": (bounds[0], bounds[1])}
    draft.emit("clip", op.name, [op.input(0)], op.output, attrs)


def _bound(draft: Draft, op: Op, index: int, key: str) -> float | None:
    number: float | None = None
    if key in op.attrs:
        number = float(op.attrs[key])
    elif op.input(index):
        value = draft.known(op.input(index))
        if value is None or value.size != 1:
            raise op.invalid(f"its {key} is computed by the model")
        number = float(value.reshape(()))
    # the attributes' defaults are the ends of float32
    if number is not None and abs(number) >= float(np.finfo(np.float32).max):
        return None
    return number


def leaky_relu(draft: Draft, op: Op) -> None:
    attrs = {"alpha": float(op.attrs.get("alpha", 0.01))}
    draft.emit("leaky_relu", op.name, [op.input(0)], op.output, attrs)


def hard(draft: Draft, op: Op) -> None:
    """HardSigmoid, and HardSwish as x times it, as layers that can be quantised."""
    x, name, last = op.input(0), op.name, op.output
    for kind, number in zip(("mul", "add"), hard_line(op), strict=True):
        value = draft.constant(f"{name}.{kind}.by", np.asarray(number, np.float32))
        made = draft.fresh(f"{last}.{kind}")
        x = draft.emit(kind, f"{name}.{kind}", [x, value], made)
    swish = op.kind == "HardSwish"
    gate = draft.fresh(f"{last}.gate") if swish else last
    draft.emit("clip", name, [x], gate, {"clamp": (0.0, 1.0)})
    if swish:
        draft.emit("mul", name, [op.input(0), gate], last)


def hard_line(op: Op) -> tuple[float, float]:
    """Return slope and offset of the line that is then clamped to 0..1."""
    usual = 1 / 6 if op.kind == "HardSwish" else 0.2
    return float(op.attrs.get("alpha", usual)), float(op.attrs.get("beta", 0.5))


def batch_norm(draft: Draft, op: Op) -> None:
    """Emit BatchNormalization in inference as a multiplication and an addition."""
    if op.integer("training_mode", 0):
        hint = "export the model in evaluation mode"
        raise op.invalid("training mode is not supported", hint)
    scale, shift, mean, variance = (_vector(draft, op, i) for i in range(1, 5))
    factor = scale / np.sqrt(variance + float(op.attrs.get("epsilon", 1e-5)))
    offset = shift - mean * factor
    rank = len(draft.tensor(op.input(0)).shape)
    shape = (1, -1, *(1,) * (rank - 2))
    names = [
        draft.constant(f"{op.name}.{text}", v.astype(np.float32).reshape(shape))
        for text, v in (("factor", factor), ("offset", offset))
    ]
    product = draft.fresh(f"{op.output}.scaled")
    draft.emit("mul", op.name, [op.input(0), names[0]], product)
    draft.emit("add", op.name, [product, names[1]], op.output)


def _numbers(draft: Draft, name: str) -> Array | None:
    """Return the real numbers of a tensor if they are known at build time, also if a
    DequantizeLinear computes them from integers of the file."""
    maker = next((n for n in reversed(draft.nodes) if name in n.outputs), None)
    if maker is None or maker.op != "dequantize":
        return draft.known(name)
    (source,) = maker.inputs
    quant = draft.tensors[source].quant
    if source not in draft.constants or quant is None:
        return None
    return dequantized(draft.constants[source], quant)


def _vector(draft: Draft, op: Op, index: int) -> npt.NDArray[np.float64]:
    value = _numbers(draft, op.input(index))
    if value is None:
        raise op.invalid(f"its input '{op.input(index)}' is computed by the model")
    return value.astype(np.float64).reshape(-1)


def cut_of(size: int, start: int, end: int, step: int) -> slice:
    """The slice of an axis, as in Python; for a negative step, a start before the first
    element becomes the first element.
    """
    return slice(max(start, -size) if step < 0 else start, end, step)


def axis_of(op: Op, axis: int, rank: int) -> int:
    """A possibly negative axis as a non-negative one."""
    if not -rank <= axis < max(rank, 1):
        raise op.invalid(f"axis {axis} of a tensor of {rank} axes")
    return axis % max(rank, 1)


def softmax(draft: Draft, op: Op) -> None:
    """Softmax along one axis; before opset 13, over all axes from `axis` on,
    flattened."""
    x, attrs = op.input(0), {"beta": 1.0}
    shape = draft.tensor(x).shape
    rank = len(shape)
    if op.opset >= 13 or op.domain:
        axis = axis_of(op, op.integer("axis", -1), rank)
        draft.emit("softmax", op.name, [x], op.output, {**attrs, "axis": axis})
        return
    axis = axis_of(op, op.integer("axis", 1), rank)
    if axis == rank - 1:
        draft.emit("softmax", op.name, [x], op.output, {**attrs, "axis": axis})
        return
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    flat, made = draft.fresh(f"{x}.flat"), draft.fresh(f"{op.output}.flat")
    draft.emit("reshape", flat, [x], flat, shape=(rows, draft.tensor(x).size // rows))
    draft.emit("softmax", op.name, [flat], made, {**attrs, "axis": 1})
    draft.emit("reshape", f"{op.name}.shape", [made], op.output, shape=shape)


def reduce_mean(draft: Draft, op: Op) -> None:
    """ReduceMean, with axes as an attribute or a constant input (from opset 18)."""
    rank = len(draft.tensor(op.input(0)).shape)
    axes = op.attrs.get("axes")
    if op.input(1):
        value = draft.known(op.input(1))
        if value is None:
            raise op.invalid("its axes are computed by the model")
        axes = tuple(value.reshape(-1).tolist())
    if not axes:
        axes = () if op.integer("noop_with_empty_axes", 0) else tuple(range(rank))
    found = tuple(sorted({axis_of(op, int(a), rank) for a in axes}))
    attrs = {"axes": found, "keepdims": bool(op.integer("keepdims", 1))}
    draft.emit("mean", op.name, [op.input(0)], op.output, attrs)


def cast(draft: Draft, op: Op) -> None:
    """Emit a cast that keeps the numbers: float32 to float32, or bytes to float32;
    others are errors."""
    x = draft.tensor(op.input(0))
    to_float = op.integer("to", 0) == 1
    if x.dtype is DType.FLOAT32 and to_float:
        draft.emit("copy", op.name, [x.name], op.output)
        return
    if x.dtype is DType.INT8 and to_float and x.quant == unit_quant(draft, x.name):
        draft.emit("dequantize", op.name, [x.name], op.output)
        return
    raise op.invalid("a change of element type is not supported", "use float32")


def unit_quant(draft: Draft, name: str) -> Quant:
    """Return the quantisation of bytes whose real value is the byte itself."""
    return Quant((1.0,), (-128,) if name in draft.unsigned else (0,))


def row(value: Array) -> tuple[float, ...]:
    """Float32 numbers as Python floats."""
    return tuple(float(v) for v in value.astype(np.float32).reshape(-1))
