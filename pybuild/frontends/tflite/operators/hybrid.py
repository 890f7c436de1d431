"""Layers with int8 weights and float32 activations, which TensorFlow's converter writes
by default ("dynamic range"): activations are quantised to int8 at run time. Knows
LiteRT's hybrid kernels: how each one quantises, and how sums become real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.ir.graph import Attr, Tensor
from pybuild.ops.hybrid import NO_PADS
from pybuild.records import dataclass


@dataclass(frozen=True)
class Hybrid:
    """How a layer is computed.

    layer       conv2d, depthwise_conv2d or dense
    batches     parts of the input with a scale each
    asymmetric  whether each part also has a zero point
    sums_first  whether sums are multiplied by the weights' scale first
    axis        the axis of output channels in the weights
    """

    layer: str
    batches: int
    asymmetric: bool
    sums_first: bool = False
    axis: int = 0


# int8 values, the names of their scales and of their zero points; "": they have none
Rows = tuple[Tensor, str, str]


@dataclass(frozen=True)
class Weights:
    """Int8 weights, their scales (one, or one for each output), and the name of the
    bias, ""."""

    tensor: Tensor
    factor: Tensor
    bias: str = ""


def is_hybrid(call: Call, x: Tensor, tensor: Tensor) -> bool:
    """Return True if a layer keeps these weights as int8 although its activations are
    float32."""
    whole = x.dtype is DType.FLOAT32 and tensor.dtype is DType.INT8
    if not whole or call.builder.hybrid == "float" or tensor.quant is None:
        return False
    # legacy uint8 became int8 with a zero point
    return not any(tensor.quant.zero_point)


def emit(
    call: Call, how: Hybrid, x: Tensor, w: tuple[Tensor, Array], bias: str,
    attrs: dict[str, Attr],
) -> None:  # fmt: skip
    """Emit the nodes of a layer; w: weights in the order of the operator `how.layer`.

    Source  LiteRT EvalHybrid, EvalHybridPerChannel: padding is 0 without a zero point,
            else the batch's zero point
    """
    builder, (tensor, value) = call.builder, w
    assert tensor.quant is not None
    scales = np.asarray(tensor.quant.scale, np.float32)
    weights = builder.add(Tensor(tensor.name, value.shape, DType.INT8), value)
    factor = builder.add(
        Tensor(f"{tensor.name}_scale", scales.shape, DType.FLOAT32), scales
    )
    pads = attrs.get("pads", NO_PADS)
    around: dict[str, Attr] = {}
    if how.asymmetric and pads != NO_PADS:
        around, attrs = {"pads": pads}, {**attrs, "pads": NO_PADS}
    rows = quantised(call, how, x, around)
    clamp = {"clamp": attrs["clamp"]} if "clamp" in attrs else {}
    attrs = {name: attr for name, attr in attrs.items() if name != "clamp"}
    names = summed(call, how.layer, rows, Weights(weights, factor, bias), attrs)
    ends = {"sums_first": how.sums_first, "axis": how.axis, **clamp}
    call.emit("scale_sums", names, ends)


def transposed(
    call: Call, x: Tensor, w: tuple[Tensor, Array], bias: str, ends: dict[str, Attr]
) -> None:
    """Emit a TRANSPOSE_CONV; w [O,KH,KW,C]: reversed weights; ends: pads, clamp.

    Source   LiteRT EvalHybrid, which rounds each product and each sum to float32; here
             sums are exact
    Errors   BuildError for scales of another axis
    """
    builder, (tensor, value) = call.builder, w
    assert tensor.quant is not None
    if tensor.quant.axis not in (None, 0):
        what = f"'{tensor.name}' has scales along axis {tensor.quant.axis}"
        raise call.error(what, "one scale, or one for each output: axis 0")
    scales = np.asarray(tensor.quant.scale, np.float32)
    weights = builder.add(Tensor(tensor.name, value.shape, DType.INT8), value)
    factor = Tensor(f"{tensor.name}_scale", scales.shape, DType.FLOAT32)
    down, across = strides = (call.option("StrideH"), call.option("StrideW"))
    pads = ends.pop("pads")
    assert isinstance(pads, tuple)
    steps = (down, across, down, across)
    # rows and columns around the image that windows meet are its zero point
    around = tuple(max(n, 0) // step for n, step in zip(pads, steps, strict=True))
    left = tuple(n - m * step for n, m, step in zip(pads, around, steps, strict=True))
    how = Hybrid("conv2d", x.shape[0], asymmetric=True)
    q, scale, zero = quantised(call, how, x, {"pads": around})
    attrs: dict[str, Attr] = {"input_dilations": strides, "pads": left}
    shape = Tensor(f"{call.label}_sums", (1,), DType.INT32)
    sums = call.between("conv2d_sums", (q.name, weights.name, zero), attrs, shape)
    names = (sums.name, scale, builder.add(factor, scales).name, bias)
    call.emit("scale_sums", names, {"sums_first": True, "axis": 0, **ends})


def summed(
    call: Call, layer: str, x: Rows, w: Weights, attrs: Mapping[str, Attr]
) -> tuple[str, ...]:
    """Emit the sums of a layer; return what a scale_sums of them reads."""
    q, scale, zero = x
    shape = Tensor(f"{call.label}_sums", (1,), DType.INT32)
    sums = call.between(f"{layer}_sums", (q.name, w.tensor.name), attrs, shape)
    names = [sums.name, scale, w.factor.name, w.bias]
    if zero:
        names += [zero, w.tensor.name]
    while not names[-1]:
        names.pop()
    return tuple(names)


def product(call: Call, x: Rows, w: Weights) -> Tensor:
    """Emit the product of int8 rows by weights [outputs, inputs]; return it as real
    numbers."""
    ends: dict[str, Attr] = {"sums_first": False, "axis": 0}
    real = Tensor(f"{call.label}_real", (1,), DType.FLOAT32)
    return call.between("scale_sums", summed(call, "dense", x, w, {}), ends, real)


def quantised(
    call: Call, how: Hybrid, x: Tensor, around: Mapping[str, Attr] | None = None
) -> Rows:
    """Return the input as int8, its scales, and its zero points; "" if it has none."""
    builder, each = call.builder, (how.batches,)
    names = [(f"{x.name}_scale", DType.FLOAT32)]
    names += [(f"{x.name}_zero", DType.INT32)] if how.asymmetric else []
    more = [builder.add(Tensor(builder.fresh(n), each, kind)) for n, kind in names]
    rule = "asymmetric" if how.asymmetric else "symmetric"
    attrs: dict[str, Attr] = {"batches": how.batches, "rule": rule, **(around or {})}
    wanted = Tensor(f"{x.name}_int8", x.shape, DType.INT8)
    q = call.between(
        "quantize_dynamic", (x.name,), attrs, wanted, tuple(t.name for t in more)
    )
    return q, more[0].name, more[1].name if how.asymmetric else ""
