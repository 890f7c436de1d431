"""Quantize and dequantize nodes of PT2E and torchao."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Kind, Ref

_TYPES = ("int8", "uint8", "int16", "uint16", "int32")


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
        to = call.get("dtype", call.get("input_dtype"))
        name = to.name if isinstance(to, Kind) else w.kind(call.tensor("input"))
        scale = _numbers(w, call, "scales", "scale")
        zero = _numbers(w, call, "zero_points", "zero_point")
        axis = int(call.get("axis", 0)) if by_channel else 1
        _emit(w, call, kind, name, scale, zero, axis)

    return handler


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
    "quantized_decomposed.quantize_per_tensor": _line("QuantizeLinear", False),
    "quantized_decomposed.quantize_per_channel": _line("QuantizeLinear", True),
    "quantized_decomposed.dequantize_per_tensor": _line("DequantizeLinear", False),
    "quantized_decomposed.dequantize_per_channel": _line("DequantizeLinear", True),
    "torchao.quantize_affine": _affine("QuantizeLinear"),
    "torchao.dequantize_affine": _affine("DequantizeLinear"),
}
