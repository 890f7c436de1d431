"""Layers with weights, normalisation and pools."""

from __future__ import annotations

import math
from typing import Any

from pybuild.frontends.torch.operators.quantised import dynamic_linear
from pybuild.frontends.torch.operators.writer import Handler, Writer, each
from pybuild.frontends.torch.reader.program import Call, Ref


def _optional(call: Call, name: str) -> str:
    value = call.get(name)
    return value.name if isinstance(value, Ref) else ""


def conv(w: Writer, call: Call) -> None:
    """conv1d to conv3d, convolution; padding by numbers, "same" or "valid"."""
    if call.get("transposed", False):
        conv_transpose(w, call)
        return
    x, weight = call.tensor("input"), call.tensor("weight")
    rank = w.rank(weight) - 2
    attrs: dict[str, Any] = {
        "strides": each(call.ints("stride", (1,)), rank),
        "dilations": each(call.ints("dilation", (1,)), rank),
        "group": int(call.get("groups", 1)),
    }
    padding = call.get("padding", 0)
    if padding == "valid":
        padding = 0
    if padding == "same":
        taps = w.shape(weight)[2:]
        whole = [(k - 1) * d for k, d in zip(taps, attrs["dilations"], strict=True)]
        attrs["pads"] = [n // 2 for n in whole] + [n - n // 2 for n in whole]
    else:
        given = padding if isinstance(padding, list | tuple) else [padding]
        attrs["pads"] = each(given, rank) * 2
    bias = _optional(call, "bias")
    w.give("Conv", x, weight, *([bias] if bias else []), **attrs)


def conv_transpose(w: Writer, call: Call) -> None:
    x, weight = call.tensor("input"), call.tensor("weight")
    rank = w.rank(weight) - 2
    attrs = {
        "strides": each(call.ints("stride", (1,)), rank),
        "dilations": each(call.ints("dilation", (1,)), rank),
        "pads": each(call.ints("padding", (0,)), rank) * 2,
        "output_padding": each(call.ints("output_padding", (0,)), rank),
        "group": int(call.get("groups", 1)),
    }
    bias = _optional(call, "bias")
    w.give("ConvTranspose", x, weight, *([bias] if bias else []), **attrs)


def linear(w: Writer, call: Call) -> None:
    if dynamic_linear(w, call):
        return
    x, weight, bias = (
        call.tensor("input"),
        call.tensor("weight"),
        _optional(call, "bias"),
    )
    if w.rank(x) == 2:
        w.give("Gemm", x, weight, *([bias] if bias else []), transB=1)
        return
    turned = w.op("Transpose", weight, perm=[1, 0])
    if bias:
        w.give("Add", w.op("MatMul", x, turned), bias)
    else:
        w.give("MatMul", x, turned)


def addmm(w: Writer, call: Call) -> None:
    attrs = {k: float(call.get(k, 1)) for k in ("alpha", "beta")}
    a, b = call.tensor("mat1"), call.tensor("mat2")
    w.give("Gemm", a, b, call.tensor("self"), **attrs)


def matmul(w: Writer, call: Call) -> None:
    a = call.tensor("self", "input")
    w.give("MatMul", a, call.tensor("mat2", "other", "tensor2"))


def baddbmm(w: Writer, call: Call) -> None:
    product = w.op("MatMul", call.tensor("batch1"), call.tensor("batch2"))
    if call.get("alpha", 1) != 1:
        product = w.op("Mul", product, w.const(call.get("alpha"), "float32"))
    if call.get("beta", 1) == 0:
        w.give("Identity", product)
    else:
        w.give("Add", product, call.tensor("self"))


def attention(w: Writer, call: Call) -> None:
    """scaled_dot_product_attention, written out."""
    q, k, v = (call.tensor(name) for name in ("query", "key", "value"))
    rank, depth = w.rank(q), w.shape(q)[-1]
    if call.get("enable_gqa", False):
        raise call.invalid("enable_gqa is not supported")
    scale = call.get("scale")
    scale = 1 / math.sqrt(depth) if scale is None else scale
    perm = [*range(rank - 2), rank - 1, rank - 2]
    turned = w.op("Transpose", k, perm=perm)
    scaled = w.op("Mul", q, w.const(scale, "float32"))
    scores = w.op("MatMul", scaled, turned)
    mask = _optional(call, "attn_mask")
    if call.get("is_causal", False):
        import numpy as np

        shape = (w.shape(q)[-2], w.shape(k)[-2])
        upper = np.triu(np.full(shape, -np.inf, np.float32), 1)
        scores = w.op("Add", scores, w.const(upper))
    elif mask and w.kind(mask) == "bool":
        least = w.const(float("-inf"), "float32")
        scores = w.op("Where", mask, scores, least)
    elif mask:
        scores = w.op("Add", scores, mask)
    w.give("MatMul", w.op("Softmax", scores, axis=-1), v)


# ---- normalisation --------------------------------------------------------------


def _row(w: Writer, name: str, value: float, count: int) -> str:
    return name or w.const([value] * count, "float32")


def batch_norm(w: Writer, call: Call) -> None:
    if call.get("training", False):
        raise call.invalid("is in training mode", "model.eval() before the export")
    x = call.tensor("input")
    count = w.shape(x)[1]
    scale = _row(w, _optional(call, "weight"), 1.0, count)
    shift = _row(w, _optional(call, "bias"), 0.0, count)
    mean, var = call.tensor("running_mean"), call.tensor("running_var")
    w.give(
        "BatchNormalization", x, scale, shift, mean, var,
        epsilon=float(call.get("eps", 1e-5)),
    )  # fmt: skip


def own_norm(w: Writer, call: Call) -> None:
    """_native_batch_norm_legit.no_stats, which an instance norm is decomposed to."""
    if w.shape(call.tensor("input"))[0] != 1 or call.get("running_mean") is not None:
        raise call.invalid("is in training mode", "model.eval() before the export")
    instance_norm(w, call)


def layer_norm(w: Writer, call: Call) -> None:
    x, shape = call.tensor("input"), call.ints("normalized_shape")
    weight, bias = _optional(call, "weight"), _optional(call, "bias")
    if not weight:
        weight = w.op("Expand", w.const(1.0, "float32"), w.ints(shape))
    w.give(
        "LayerNormalization", x, weight, *([bias] if bias else []),
        axis=-len(shape), epsilon=float(call.get("eps", 1e-5)),
    )  # fmt: skip


def rms_norm(w: Writer, call: Call) -> None:
    x, shape = call.tensor("input"), call.ints("normalized_shape")
    axes = list(range(-len(shape), 0))
    square = w.op("Mul", x, x)
    mean = w.op("ReduceMean", square, w.ints(axes), keepdims=1)
    eps = call.get("eps", 1.1920928955078125e-07)
    root = w.op("Sqrt", w.op("Add", mean, w.const(eps, "float32")))
    made, weight = w.op("Div", x, root), _optional(call, "weight")
    if weight:
        w.give("Mul", made, weight)
    else:
        w.give("Identity", made)


def group_norm(w: Writer, call: Call) -> None:
    """Emit a group norm: groups become channels of an instance norm, then each
    channel's weights are applied."""
    x = call.tensor("input")
    shape = w.shape(x)
    groups = int(call.get("num_groups", call.get("group", 1)))
    flat = w.reshape(x, (shape[0], groups, -1))
    ones, zeros = _row(w, "", 1.0, groups), _row(w, "", 0.0, groups)
    eps = float(call.get("eps", 1e-5))
    made = w.op("InstanceNormalization", flat, ones, zeros, epsilon=eps)
    made = w.reshape(made, shape)
    row = [shape[1], *[1] * (len(shape) - 2)]
    for kind, name in (("Mul", "weight"), ("Add", "bias")):
        if _optional(call, name):
            made = w.op(kind, made, w.reshape(_optional(call, name), row))
    w.give("Identity", made)


def instance_norm(w: Writer, call: Call) -> None:
    x = call.tensor("input")
    if not call.get("use_input_stats", True):
        batch_norm(w, call)
        return
    count = w.shape(x)[1]
    scale = _row(w, _optional(call, "weight"), 1.0, count)
    shift = _row(w, _optional(call, "bias"), 0.0, count)
    eps = float(call.get("eps", 1e-5))
    w.give("InstanceNormalization", x, scale, shift, epsilon=eps)


# ---- sizes --------------------------------------------------------------------


def resized(mode: str, rank: int) -> Handler:
    """upsample_*: to a size, or by factors."""

    def handler(w: Writer, call: Call) -> None:
        x = call.tensor("input", "self")
        size = w.shape(call.outputs[0])[2:]
        attrs: dict[str, Any] = {"mode": mode}
        if mode == "nearest":
            attrs |= {"nearest_mode": "floor"}
            attrs["coordinate_transformation_mode"] = "asymmetric"
        else:
            corners = bool(call.get("align_corners", False))
            other = "pytorch_half_pixel" if mode == "cubic" else "half_pixel"
            kind = "align_corners" if corners else other
            attrs["coordinate_transformation_mode"] = kind
            attrs |= {"cubic_coeff_a": -0.75} if mode == "cubic" else {}
        factors = call.get("scale_factors") or call.get("scales")
        if factors and mode != "nearest":
            given = [1.0, 1.0, *map(float, factors)]
            w.give("Resize", x, "", w.const(given, "float32"), **attrs)
        else:
            wanted = (*w.shape(x)[:2], *size)
            w.give("Resize", x, "", "", w.ints(wanted), **attrs)

    return handler


LAYERS: dict[str, Handler] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), conv),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), conv_transpose
    ),
    **dict.fromkeys(("mm", "bmm", "matmul"), matmul),
    **dict.fromkeys(
        ("batch_norm", "_native_batch_norm_legit_no_training"), batch_norm
    ),
    **dict.fromkeys(("layer_norm", "native_layer_norm"), layer_norm),
    **dict.fromkeys(("group_norm", "native_group_norm"), group_norm),
    "_native_batch_norm_legit": own_norm, "addmm": addmm,
    "baddbmm": baddbmm, "instance_norm": instance_norm, "linear": linear,
    "rms_norm": rms_norm, "scaled_dot_product_attention": attention,
    "upsample_bilinear2d": resized("linear", 2),
    "upsample_bicubic2d": resized("cubic", 2),
    "upsample_linear1d": resized("linear", 1),
    "upsample_nearest1d": resized("nearest", 1),
    "upsample_nearest2d": resized("nearest", 2),
}  # fmt: skip
