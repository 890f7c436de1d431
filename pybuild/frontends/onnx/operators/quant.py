"""QuantizeLinear, DequantizeLinear, and QLinear operators as a float operator between
both, and so operators that only move quantised values. The pass `qdq` makes integer
arithmetic of it; the attribute `simulated` marks nodes that stand for integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.unsigned import held, kind_of, lift, raised
from pybuild.frontends.onnx.operators import dense, eltwise, spatial
from pybuild.frontends.onnx.operators.elements import onnx_type, plain
from pybuild.frontends.onnx.operators.eltwise import axis_of, row
from pybuild.frontends.onnx.operators.products import MATMUL
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Quant, Tensor
from pybuild.ops.fixed_point.quant import quantized
from pybuild.ops.shape import MOVING

Handler = Callable[[Draft, Op], None]
select = plain("where")

# these keep the scale of their first input
KEEPING = (
    "MaxPool", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice",
    "Identity", "Concat", "Pad", "Split", "GlobalMaxPool", "Dropout",
)  # fmt: skip
# these do, too; the inputs whose values they move, None: all
MOVED: dict[str, tuple[int, ...] | None] = {
    "ArgMax": (0,), "ArgMin": (0,), "CenterCropPad": (0,), "DepthToSpace": (0,),
    "Expand": (0,), "Gather": (0,), "GatherElements": (0,), "GatherND": (0,),
    "Max": None, "Min": None, "Pad": (0,), "ReduceMax": (0,), "ReduceMin": (0,),
    "Resize": (0,), "ReverseSequence": (0,), "SpaceToDepth": (0,), "Tile": (0,),
    "TopK": (0,), "Trilu": (0,), "Upsample": (0,), "Where": (1, 2),
}  # fmt: skip
# what their other outputs hold: places
_PLACES = {"ArgMax": (0,), "ArgMin": (0,), "TopK": (1,)}
_TWO_OPERANDS = (
    "QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "QLinearMul",
)  # fmt: skip


def quant_of(
    draft: Draft, op: Op, scale: str, zero: str, axis: int | None, held: bool = False
) -> tuple[Quant, str]:
    """Return the quantisation that a node's inputs give, and the element type.

    axis    non-negative; used if there are several scales
    held    whether it is of a constant: a scale may then be 0
    """
    scales, zeros = draft.known(scale), draft.known(zero) if zero else None
    if scales is None or (zero and zeros is None):
        hint = "quantise statically: scales and zero points must be constants"
        raise op.invalid("its scale is computed by the model", hint)
    if scales.dtype != np.float32 or op.integer("block_size", 0):
        raise op.invalid("only float32 scales per tensor or channel are supported")
    numbers = row(scales)
    fit = [0 < s < np.inf or (held and s == 0) for s in numbers]
    if not numbers:
        raise op.invalid("it has no scale")
    if not all(fit):
        at = fit.index(False)
        where = f" in channel {at}" if len(numbers) > 1 else ""
        what = f"its scale {numbers[at]:g}{where} is not a positive number"
        raise op.invalid(what, "quantise the model again")
    kind = "uint8" if zeros is None else zeros.dtype.name
    points = (0,) if zeros is None else tuple(int(z) for z in zeros.reshape(-1))
    points = tuple(z - lift(kind) for z in points)
    if len(set(points)) == 1:
        points = points[:1]
    return Quant(numbers, points, axis if scales.size > 1 else None), kind


def _axis(draft: Draft, op: Op, x: str, scale: str) -> int | None:
    scales = draft.known(scale)
    if scales is None or scales.size == 1:
        return None
    shape = draft.shape(x)
    axis = axis_of(op, op.integer("axis", 1), len(shape))
    if scales.size != shape[axis]:
        raise op.invalid(f"{scales.size} scales on axis {axis} of {list(shape)}")
    return axis


def quantize_linear(draft: Draft, op: Op) -> None:
    axis = _axis(draft, op, op.input(0), op.input(1))
    quant, kind = quant_of(draft, op, op.input(1), op.input(2), axis)
    if not op.input(2) and op.integer("output_dtype", 0):
        kind = onnx_type(op, op.integer("output_dtype", 0)).value
        quant = replace(quant, zero_point=(-lift(kind),))
    if kind not in ("int8", "uint8") and not _sixteen(quant, kind):
        what = f"quantisation to {kind} is not supported"
        raise op.invalid(what, "use int8, uint8, or 16 bits with one scale")
    value = draft.known(op.input(0))
    if value is not None:
        tensor = Tensor(op.output, value.shape, held(kind), quant)
        integers = quantized(value, tensor, "even").astype(np.int32) + lift(kind)
        draft.values[op.output] = integers.astype(kind)
        return
    if axis is not None:
        raise op.invalid("scales per channel of a computed tensor are not supported")
    quantize(draft, op.name, op.input(0), op.output, quant, kind)


def quantize(
    draft: Draft, name: str, x: str, output: str, quant: Quant, kind: str
) -> None:
    """Emit a quantize node; `kind` is the element type in the file."""
    if lift(kind):
        draft.unsigned.add(output)
    draft.emit(
        "quantize", name, [x], output, {"simulated": True},
        dtype=held(kind), quant=quant,
    )  # fmt: skip


def _sixteen(quant: Quant, kind: str) -> bool:
    """Return True for 16 bits as our kernels support them: of one scale."""
    return kind in ("int16", "uint16") and len(quant.scale) == 1


def dequantize_linear(draft: Draft, op: Op) -> None:
    if op.integer("output_dtype", 1) not in (0, 1):
        raise op.invalid("only float32 is a layer's output")
    axis = _axis(draft, op, op.input(0), op.input(1))
    known = draft.known(op.input(0)) is not None
    quant, kind = quant_of(draft, op, op.input(1), op.input(2), axis, known)
    if not op.input(2):
        quant, kind = _default_zero(draft, op.input(0), quant)
    dequantize(draft, op, op.input(0), op.output, quant, kind)


def _default_zero(draft: Draft, x: str, quant: Quant) -> tuple[Quant, str]:
    """Return the quantisation with a zero point of 0 in the input's own type."""
    value = draft.known(x)
    kind = kind_of(draft, x) if value is None else value.dtype.name
    return replace(quant, zero_point=(-lift(kind),)), kind


def dequantize(
    draft: Draft, op: Op, x: str, output: str, quant: Quant, kind: str
) -> None:
    """Emit a dequantize node for a constant or a computed tensor."""
    if kind not in ("int8", "uint8", "int32") and not _sixteen(quant, kind):
        what = f"dequantisation from {kind} is not supported"
        raise op.invalid(what, "use int8, uint8, or int32 for a bias")
    value = draft.known(x)
    if value is not None:
        name = draft.integers(x, value, quant)
        draft.sources[output] = name
    else:
        name = told(draft, x, quant, kind)
        tensor = draft.tensor(name)
        if tensor.quant is None or tensor.dtype not in (DType.INT8, DType.INT16):
            raise op.invalid(f"'{x}' is {tensor.dtype.value} without a scale")
        if tensor.quant != quant:
            what = f"'{x}' was quantised with another scale or zero point"
            raise op.invalid(what, "use one scale for each tensor")
    draft.emit("dequantize", op.name, [name], output, {"simulated": True})


def told(draft: Draft, x: str, quant: Quant, kind: str) -> str:
    """Return the signed tensor of `x`; without a scale it gets this reader's."""
    tensor = draft.tensor(x)
    if tensor.quant is not None or tensor.dtype.value != kind:
        return draft.inner.get(x, x)
    if kind in ("int32", "uint16"):
        return x
    if kind in ("int8", "int16"):
        draft.tensors[x] = replace(tensor, quant=quant)
        return x
    outer = raised(quant, kind)
    source: str | None = x
    while source is not None:  # and of what only moves it, which passes may change
        draft.tensors[source] = replace(draft.tensors[source], quant=outer)
        source = _moved_from(draft, source)
    name = draft.fresh(f"{x}.int8")
    draft.emit("quantize", name, [x], name, dtype=DType.INT8, quant=quant)
    draft.inner[x] = name
    draft.unsigned.add(name)
    return name


def _moved_from(draft: Draft, name: str) -> str | None:
    """Return the tensor without a scale that a node moves to this one, or None."""
    maker = next((n for n in draft.nodes if name in n.outputs), None)
    if maker is None or maker.op not in (*MOVING, "copy"):
        return None
    x = draft.tensors[maker.inputs[0]]
    fits = x.quant is None and x.dtype is draft.tensors[name].dtype
    return x.name if fits and x.name not in draft.constants else None


def travels(draft: Draft, op: Op) -> bool:
    """Return True if a node only moves values of one scale."""
    if op.domain or op.kind not in MOVED:
        return False
    if op.kind in KEEPING and op.attrs.get("mode", "constant") == "constant":
        return False  # its layer moves the integers by itself
    if op.kind == "Resize" and op.attrs.get("mode", "nearest") != "nearest":
        return False
    quants = {_scale_of(draft, op.input(i)) for i in _data(op)}
    return len(quants) == 1 and None not in quants


def _data(op: Op) -> tuple[int, ...]:
    places = MOVED[op.kind]
    return tuple(range(len(op.inputs))) if places is None else places


def _scale_of(draft: Draft, name: str) -> tuple[Quant, str] | None:
    """Return the one scale of a computed quantised tensor, and its type in the
    file."""
    tensor = draft.tensors.get(name)
    if tensor is None or name in draft.values:
        return None
    if tensor.dtype not in (DType.INT8, DType.INT16):
        return None
    if tensor.quant is None or len(tensor.quant.scale) != 1:
        return None
    plain = tensor.quant.scale == (1.0,)  # numbers that are not real ones
    return None if plain else (tensor.quant, kind_of(draft, name))


def travel(draft: Draft, op: Op, handler: Handler) -> None:
    """Emit the node on real numbers, between a dequantize and a quantize of one
    scale."""
    found = _scale_of(draft, op.input(_data(op)[0]))
    assert found is not None
    quant, kind = found
    inputs = list(op.inputs)
    for i in _data(op):
        made = draft.fresh(f"{op.output}.{op.input(i)}")
        dequantize(draft, op, op.input(i), made, quant, kind)
        inputs[i] = made
    kept = _PLACES.get(op.kind, ())
    reals = [
        name if i in kept or not name else draft.fresh(f"{name}.real")
        for i, name in enumerate(op.outputs)
    ]
    handler(draft, replace(op, inputs=tuple(inputs), outputs=tuple(reals)))
    for name, real in zip(op.outputs, reals, strict=True):
        if name != real:
            quantize(draft, f"{op.name}.quantize", real, name, quant, kind)


def _real(
    draft: Draft, op: Op, inputs: Sequence[int], channel: int | None = None
) -> str:
    """Return x as a float tensor; `inputs`: indices of x, scale and zero point."""
    x, scale, zero = (op.input(i) for i in inputs)
    quant, kind = quant_of(draft, op, scale, zero, channel, draft.known(x) is not None)
    output = draft.fresh(f"{op.output}.{x}")
    dequantize(draft, op, x, output, quant, kind)
    return output


def _wrapped(
    draft: Draft, op: Op, handler: Handler, reals: Sequence[str], y: tuple[int, int]
) -> None:
    """Emit a float operator on `reals`, quantised with the scale and zero point at
    `y`."""
    made = draft.fresh(f"{op.output}.real")
    inner = replace(op, inputs=tuple(reals), outputs=(made,))
    handler(draft, inner)
    quant, kind = quant_of(draft, op, op.input(y[0]), op.input(y[1]), None)
    quantize(draft, f"{op.name}.quantize", made, op.output, quant, kind)


def qlinear_conv(draft: Draft, op: Op) -> None:
    """x, its scale and zero; w, its; y's; bias int32 of scale sx * sw."""
    x, w = _real(draft, op, (0, 1, 2)), _real(draft, op, (3, 4, 5), 0)
    bias = _bias(draft, op, op.input(8), (op.input(1), op.input(4)))
    _wrapped(draft, op, spatial.conv, [x, w, bias], (6, 7))


def _bias(draft: Draft, op: Op, name: str, scales: tuple[str, str]) -> str:
    """Return an int32 bias as a float tensor; its scale is the product of two
    others."""
    value = draft.known(name) if name else None
    if value is None:
        return ""
    if value.dtype != np.int32:
        raise op.invalid(f"its bias is {value.dtype.name}, not int32")
    x, w = (np.asarray(draft.known(s), np.float64).reshape(-1) for s in scales)
    product = tuple(float(s) for s in x * w)
    quant = Quant(product, (0,), 0 if len(product) > 1 else None)
    output = draft.fresh(f"{op.output}.bias")
    dequantize(draft, op, name, output, quant, "int32")
    return output


def qlinear_matmul(draft: Draft, op: Op) -> None:
    a, b = _real(draft, op, (0, 1, 2)), _real(draft, op, (3, 4, 5), 1)
    _wrapped(draft, op, MATMUL, [a, b], (6, 7))


def qgemm(draft: Draft, op: Op) -> None:
    """com.microsoft.QGemm: a, b with scales and zeros, C int32, y's scale and zero."""
    channel = 0 if op.integer("transB", 0) else 1
    a, b = _real(draft, op, (0, 1, 2)), _real(draft, op, (3, 4, 5), channel)
    if not op.input(7):
        raise op.invalid("a float output is not supported")
    alpha = op.attrs.get("alpha", 1.0)
    if alpha != 1.0:
        raise op.invalid(f"alpha {alpha} is not supported")
    bias = _bias(draft, op, op.input(6), (op.input(1), op.input(4)))
    _wrapped(draft, op, dense.gemm, [a, b, bias], (7, 8))


def qlinear_binary(draft: Draft, op: Op) -> None:
    """com.microsoft.QLinearAdd and QLinearMul."""
    kind = op.kind.removeprefix("QLinear")
    reals = [_real(draft, op, (0, 1, 2)), _real(draft, op, (3, 4, 5))]
    _wrapped(draft, replace(op, kind=kind), eltwise.same, reals, (6, 7))


_UNARY: dict[str, tuple[str, Handler]] = {
    "QLinearAveragePool": ("AveragePool", partial(spatial.pool, added=True)),
    "QLinearSigmoid": ("Sigmoid", eltwise.same),
    "QLinearLeakyRelu": ("LeakyRelu", eltwise.leaky_relu),
    "QLinearSoftmax": ("Softmax", eltwise.softmax),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", spatial.global_average),
}


def qlinear_unary(draft: Draft, op: Op) -> None:
    """com.microsoft operators on x, its scale and zero, y's scale and zero."""
    if op.integer("channels_last", 0):
        raise op.invalid("channels_last is not supported")
    kind, handler = _UNARY[op.kind]
    opset = op.integer("opset", 13) if op.kind == "QLinearSoftmax" else op.opset
    inner = replace(op, kind=kind, domain="", opset=opset)
    _wrapped(draft, inner, handler, [_real(draft, op, (0, 1, 2))], (3, 4))


def qlinear_concat(draft: Draft, op: Op) -> None:
    """com.microsoft.QLinearConcat: y's scale and zero, then three of each input."""
    from pybuild.frontends.onnx.operators.shape import concat

    count = (len(op.inputs) - 2) // 3
    reals = [_real(draft, op, (2 + 3 * i, 3 + 3 * i, 4 + 3 * i)) for i in range(count)]
    _wrapped(draft, op, concat, reals, (0, 1))


def qlinear_where(draft: Draft, op: Op) -> None:
    """com.microsoft.QLinearWhere: a condition; x, y, each with scale and zero; z's."""
    reals = [_real(draft, op, (1, 2, 3)), _real(draft, op, (4, 5, 6))]
    inner = replace(op, kind="Where", domain="", opset=16)
    _wrapped(draft, inner, select, [op.input(0), *reals], (7, 8))


def declared_quants(draft: Draft, ops: Sequence[Op]) -> None:
    """Record the scales that the file gives only where a tensor is read. Scales are
    traced back through operators that keep them, to the model's inputs."""
    wanted: dict[str, Quant] = {}
    for op in reversed(ops):
        moved = op.kind in KEEPING or op.kind in MOVED
        if moved and op.outputs and op.output in wanted:
            places = (0,) if op.kind in KEEPING else _data(op)
            every = op.kind == "Concat"
            for name in op.inputs if every else [op.input(i) for i in places]:
                wanted.setdefault(name, wanted[op.output])
        for x, scale, zero in _scaled_inputs(op):
            scales, zeros = draft.values.get(scale), draft.values.get(zero)
            if scales is not None and scales.size == 1 and x not in draft.values:
                wanted.setdefault(x, _single(scales, zeros))
    draft.quants.update(wanted)


def _single(scales: Array, zeros: Array | None) -> Quant:
    point = 0 if zeros is None or not zeros.size else int(zeros.reshape(-1)[0])
    if zeros is not None:
        point -= lift(zeros.dtype.name)
    return Quant(row(scales), (point,))


def _scaled_inputs(op: Op) -> list[tuple[str, str, str]]:
    """Return the names (tensor, scale, zero point) of every scaled input of a node."""
    if op.kind == "DequantizeLinear":
        starts = [0]
    elif op.kind in _TWO_OPERANDS:
        starts = [0, 3]
    elif op.kind == "QLinearWhere":
        starts = [1, 4]
    elif op.kind == "QLinearConcat":
        starts = list(range(2, len(op.inputs) - 2, 3))
    else:
        starts = [0] if op.kind in _UNARY else []
    return [(op.input(i), op.input(i + 1), op.input(i + 2)) for i in starts]
