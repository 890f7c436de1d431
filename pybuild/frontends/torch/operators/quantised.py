"""Quantize and dequantize nodes of PT2E and torchao; by scales that are known, or that
the model computes of the range of what it quantises (is_dynamic=True).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.onnx.reader.op import TORCH
from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Kind, Ref

_TYPES = ("int8", "uint8", "int16", "uint16", "int32")
_WHOLE = ("dequantize_per_tensor", "dequantize_per_channel")


def _numbers(w: Writer, call: Call, *names: str) -> Array | None:
    """Return the values of a scale or zero point: a number of the node, or a known
    tensor."""
    for name in names:
        value = call.get(name)
        if isinstance(value, Ref):
            found = w.known(value.name)
            if found is None:
                hint = "quantise statically: prepare_pt2e with is_dynamic=False"
                raise call.invalid(f"its {name} is computed by the model", hint)
            return found.reshape(-1) if found.size > 1 else found.reshape(())
        if isinstance(value, int | float):
            return np.asarray(value)
    return None


def _line(kind: str, by_channel: bool) -> Handler:
    """Emit (x - zero point) * scale, or the reverse; for the whole tensor or along an
    axis."""

    def handler(w: Writer, call: Call) -> None:
        if not by_channel and _by_range(w, call, kind):
            return
        to = call.get("dtype", call.get("input_dtype"))
        name = to.name if isinstance(to, Kind) else w.kind(call.tensor("input"))
        scale = _numbers(w, call, "scales", "scale")
        zero = _numbers(w, call, "zero_points", "zero_point")
        axis = int(call.get("axis", 0)) if by_channel else 1
        _emit(w, call, kind, name, scale, zero, axis)

    return handler


def choose_qparams(w: Writer, call: Call) -> None:
    """The scale and the zero point of a tensor of int8, by its range."""
    to, x = call.get("dtype"), call.tensor("input")
    if not isinstance(to, Kind) or to.name != "int8" or w.kind(x) != "float32":
        raise call.invalid("only float32 is quantised so, to int8", "use int8")
    _whole_range(call, "int8")
    q, (scale, zero) = w.fresh(), (n or w.fresh() for n in call.outputs)
    w.op("QuantizeByRange", x, to=(q, scale, zero), domain=TORCH,
         eps=float(call.get("eps", 0.0)))  # fmt: skip
    w.ranges[scale] = w.name(x), q


def _by_range(w: Writer, call: Call, kind: str) -> bool:
    """True if a node's scale is that of a range; then it is written."""
    scale, x = call.get("scale"), w.name(call.tensor("input"))
    if not isinstance(scale, Ref) or scale.name not in w.ranges:
        return False
    of, q = w.ranges[scale.name]
    zero = call.tensor("zero_point")
    if kind == "QuantizeLinear" and x == of:
        w.aliases[call.outputs[0]] = q
        return True
    if kind == "DequantizeLinear" and x == q:
        less = w.op("Sub", w.cast(q, "int32"), zero)
        w.give("Mul", w.cast(less, "float32"), scale.name)
        w.dynamic[call.outputs[0]] = q, scale.name, zero
        return True
    return False


def dynamic_linear(w: Writer, call: Call) -> bool:
    """True if a linear layer meets int8 by a range and known int8 weights; then it is
    written: as sums of integers."""
    x, weight = w.dynamic.get(call.tensor("input")), call.tensor("weight")
    made = w.makers().get(weight)
    if x is None or made is None or made.target.split(".")[1] not in _WHOLE:
        return False
    integers = w.known(made.tensor("input"))
    scale = _numbers(w, made, "scales", "scale")
    zero = _numbers(w, made, "zero_points", "zero_point")
    if integers is None or scale is None or integers.dtype not in (np.int8, np.uint8):
        return False
    if scale.ndim and int(made.get("axis", 0)) != 0:
        return False
    zeros = np.zeros(scale.shape) if zero is None else zero
    given = [made.tensor("input"), w.const(scale, "float32"), w.const(zeros, "int32")]
    bias = call.get("bias")
    given += [bias.name] if isinstance(bias, Ref) else []
    w.give("LinearOfRange", *x, *given, domain=TORCH)
    return True


def _emit(
    w: Writer, call: Call, kind: str, name: str, scale: Array | None,
    zero: Array | None, axis: int, size: int = 0,
) -> None:  # fmt: skip
    if name not in _TYPES or scale is None:
        raise call.invalid(f"quantisation to {name} is not supported", "use int8")
    if kind == "QuantizeLinear":
        _whole_range(call, name)
    scales = w.const(scale, "float32")
    points = np.zeros(scale.shape) if zero is None else zero
    zeros = w.const(np.broadcast_to(points, scale.shape), name)
    x = call.tensor("input")
    attrs: dict[str, Any] = {"axis": axis} if scale.ndim else {}
    attrs |= {"block_size": size} if size else {}
    w.give(kind, x, scales, zeros, **attrs)


def _whole_range(call: Call, name: str) -> None:
    """Check that integers use the whole range of their type.

    Errors  BuildError for integers that use less than their type has
    """
    low, high = call.get("quant_min"), call.get("quant_max")
    span = np.iinfo(name)
    narrow = low not in (None, span.min, span.min + 1) or high not in (None, span.max)
    if narrow:
        what = f"quantisation to {low}..{high} of {name} is not supported"
        raise call.invalid(what, f"{span.min}..{span.max}")


def _affine(kind: str) -> Handler:
    """torchao.quantize_affine and similar: one block for all, one per channel, or
    groups along one axis of constants."""

    def handler(w: Writer, call: Call) -> None:
        x, block = call.tensor("input"), call.ints("block_size")
        shape = w.shape(x)
        axes = [i for i, (n, b) in enumerate(zip(shape, block, strict=True)) if n != b]
        groups = [i for i in axes if block[i] > 1]
        back = kind == "DequantizeLinear"
        if len(axes) - len(groups) > 1 or len(groups) > 1 or (groups and not back):
            what = f"blocks {list(block)} of {list(shape)} are not supported"
            raise call.invalid(what, "a scale per tensor, channel or group of a row")
        to = call.get("output_dtype" if kind == "QuantizeLinear" else "input_dtype")
        name = to.name if isinstance(to, Kind) else "int8"
        scale, zero = _numbers(w, call, "scale"), _numbers(w, call, "zero_point")
        if not groups or scale is None:
            _emit(w, call, kind, name, scale, zero, axes[0] if axes else 1)
            return
        (axis,) = groups
        counts = [n // b for n, b in zip(shape, block, strict=True)]
        points = None if zero is None else zero.reshape(counts)
        _emit(w, call, kind, name, scale.reshape(counts), points, axis, block[axis])

    return handler


QUANTISED: dict[str, Handler] = {
    "quantized_decomposed.choose_qparams": choose_qparams,
    "quantized_decomposed.quantize_per_tensor": _line("QuantizeLinear", False),
    "quantized_decomposed.quantize_per_channel": _line("QuantizeLinear", True),
    "quantized_decomposed.dequantize_per_tensor": _line("DequantizeLinear", False),
    "quantized_decomposed.dequantize_per_channel": _line("DequantizeLinear", True),
    "torchao.quantize_affine": _affine("QuantizeLinear"),
    "torchao.dequantize_affine": _affine("DequantizeLinear"),
}
