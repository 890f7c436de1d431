"""An ONNX file as the standard reads it: its own quantize and dequantize nodes followed
one by one, every real number in float64. onnx's interpreter, with that put into it.

Says who is right where an interpreter rounds in another place than a build does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_average_pool import AveragePool_19 as _AveragePool
from onnx.reference.ops.op_cast import cast_to
from onnx.reference.ops.op_conv import Conv as _Conv
from onnx.reference.ops.op_conv_transpose import ConvTranspose as _ConvTranspose
from onnx.reference.ops.op_max_pool import MaxPool as _MaxPool

from pybuild.dtype import Array
from pybuild.errors import BuildError

Run = Callable[[Mapping[str, Array]], dict[str, Array]]
_MICROSOFT = "com.microsoft"


def standard(path: Path, wanted: Sequence[str]) -> Run:
    """A function that computes the tensors `wanted` of the file, which are there by
    these names.

    Errors  BuildError where onnx's interpreter has not one of the operators
    """
    net = evaluator(path, wanted)
    names = list(net.output_names)

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        fed = {name: wide(value) for name, value in inputs.items()}
        try:
            with np.errstate(all="ignore"):
                found = net.run(names, fed)
        except Exception as error:
            raise not_run(path, error) from None
        return dict(zip(names, map(_narrow, found), strict=True))

    return run


def evaluator(path: Path, wanted: Sequence[str] = ()) -> ReferenceEvaluator:
    """onnx's interpreter of the file, all real constants float64; `wanted` too are
    outputs.
    """
    model = onnx.load(path)
    nodes = [part for node in model.graph.node for part in _written_out(node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    _widen(model.graph)
    made = {name for node in nodes for name in node.output}
    given = {o.name for o in model.graph.output}
    more = [n for n in wanted if n in made and n not in given]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in more)
    try:
        return ReferenceEvaluator(model, new_ops=list(_OPERATORS))
    except Exception as error:
        raise not_run(path, error) from None


def not_run(path: Path, error: Exception) -> BuildError:
    what = f"onnx's interpreter cannot run it: {' '.join(str(error).split())[:200]}"
    return BuildError(path.name, what, "--ref numpy")


def _widen(graph: Any) -> None:
    """Real constants as float64, so that no operator has two types."""
    tensors = [*graph.initializer]
    for node in graph.node:
        tensors += [a.t for a in node.attribute if node.op_type == "Constant"]
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            value = numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def wide(value: Any) -> Any:
    return value.astype(np.float64) if value.dtype == np.float32 else value


def _narrow(value: Any) -> Any:
    value = np.asarray(value)
    return value.astype(np.float32) if value.dtype == np.float64 else value


# ---- QLinear operators: dequantise, the operator, quantise ----------------------

# operator -> the standard's; where its inputs (x, scale, zero) begin; where y's are
_LINEAR: dict[str, tuple[str, tuple[int, ...], int]] = {
    "QLinearConv": ("Conv", (0, 3), 6),
    "QLinearMatMul": ("MatMul", (0, 3), 6),
    "QGemm": ("Gemm", (0, 3), 7),
    "QLinearAdd": ("Add", (0, 3), 6),
    "QLinearMul": ("Mul", (0, 3), 6),
    "QLinearAveragePool": ("AveragePool", (0,), 3),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 3),
    "QLinearLeakyRelu": ("LeakyRelu", (0,), 3),
    "QLinearSigmoid": ("Sigmoid", (0,), 3),
    "QLinearSoftmax": ("Softmax", (0,), 3),
    "QLinearWhere": ("Where", (1, 4), 7),
}
_LINE = ("QuantizeLinear", "DequantizeLinear")
# along which axis the scales of weights are
_ALONG = {"QLinearConv": 0, "QLinearMatMul": 1}


def _written_out(node: Any) -> list[Any]:
    """A QLinear node as three kinds of nodes of the standard; any other as it is."""
    if node.op_type == "QLinearConcat":
        starts = tuple(range(2, len(node.input) - 2, 3))
        return _three(node, "Concat", starts, 0)
    if node.op_type in _LINEAR:
        return _three(node, *_LINEAR[node.op_type])
    if node.domain == _MICROSOFT and node.op_type in _LINE:
        node = onnx.NodeProto.FromString(node.SerializeToString())
        node.domain = ""
    return [node]


def _three(node: Any, kind: str, starts: tuple[int, ...], end: int) -> list[Any]:
    made, reads = [], []
    for index, start in enumerate(starts):
        name = f"{node.output[0]}/real{index}"
        axis: dict[str, Any] = {}
        if index == 1:
            columns = _attribute(node, "transB") == 0
            axis = {"axis": _ALONG.get(node.op_type, int(columns))}
        given = node.input[start : start + 3]
        made.append(helper.make_node("DequantizeLinear", given, [name], **axis))
        reads.append(name)
    bias = {"QLinearConv": 8, "QGemm": 6}.get(node.op_type, len(node.input))
    if bias < len(node.input) and node.input[bias]:
        name = f"{node.output[0]}/bias"
        scales = [node.input[1], node.input[4]]
        made.append(helper.make_node("Mul", scales, [f"{name}/scale"]))
        given = [node.input[bias], f"{name}/scale"]
        made.append(helper.make_node("DequantizeLinear", given, [name], axis=0))
        reads.append(name)
    if kind == "Where":
        reads.insert(0, node.input[0])
    real = f"{node.output[0]}/real"
    inner = helper.make_node(kind, reads, [real])
    dropped = ("channels_last", "opset")
    inner.attribute.extend(a for a in node.attribute if a.name not in dropped)
    given = [real, *node.input[end : end + 2]]
    return [*made, inner, helper.make_node("QuantizeLinear", given, node.output)]


def _attribute(node: Any, name: str) -> int:
    return next((a.i for a in node.attribute if a.name == name), 0)


# ---- operators of the interpreter, in float64 -----------------------------------


def _along(value: Any, like: Any, axis: int, block: int = 0) -> Any:
    """A scale or zero point, laid along an axis, or repeated over its blocks."""
    if block:
        wide = np.repeat(value, block, axis)
        return wide[tuple(slice(d) for d in like.shape)]
    if value.size == 1:
        return value.reshape(())
    row = [1] * like.ndim
    row[axis] = value.size
    return value.reshape(row)


class QuantizeLinear(OpRun):
    """round(x / scale), halves to even, + zero point, held within the type."""

    def _run(
        self, x: Any, scale: Any, zero: Any = None, axis: int = 1,
        saturate: int = 1, block_size: int = 0, output_dtype: int = 0,
        precision: int = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        kind = np.dtype(np.uint8) if zero is None else zero.dtype
        if zero is None and output_dtype:
            kind = helper.tensor_dtype_to_np_dtype(output_dtype)
        wide = _along(scale.astype(np.float64), x, axis, block_size or 0)
        whole = np.rint(x.astype(np.float64) / wide)
        if zero is not None:
            whole = whole + _along(zero.astype(np.float64), x, axis, block_size or 0)
        span = np.iinfo(kind)
        return (np.clip(whole, span.min, span.max).astype(kind),)


class DequantizeLinear(OpRun):
    """(x - zero point) * scale."""

    def _run(
        self, x: Any, scale: Any, zero: Any = None, axis: int = 1,
        block_size: int = 0, output_dtype: int = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        whole = x.astype(np.float64)
        if zero is not None:
            whole = whole - _along(zero.astype(np.float64), x, axis, block_size or 0)
        return (whole * _along(scale.astype(np.float64), x, axis, block_size or 0),)


class Cast(OpRun):
    """To float32 is to float64 here."""

    def _run(
        self, x: Any, to: int = 0, saturate: Any = None, round_mode: Any = None
    ) -> tuple[Any, ...]:
        if to == onnx.TensorProto.FLOAT:
            return (x.astype(np.float64),)
        kind: Any = to
        return (cast_to(x, kind, saturate),)


def _windows(x: Any, kernel: Sequence[int], given: Sequence[Any], fill: float) -> Any:
    """Every window of x[N, C, ...], as [N, C, outputs..., kernel...].

    given  strides, dilations, pads; None: as the standard has them by default
    """
    strides, dilations, pads = given
    rank = x.ndim - 2
    ones = [1] * rank
    strides, dilations = strides or ones, dilations or ones
    pads = pads or [0] * (2 * rank)
    wide = [(0, 0), (0, 0), *((pads[i], pads[rank + i]) for i in range(rank))]
    x = np.pad(x, wide, constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    axes = tuple(range(2, 2 + rank))
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    whole = slice(None)
    cut: Any = (whole, whole, *(slice(None, None, s) for s in strides))
    return seen[(*cut, *(slice(None, None, d) for d in dilations))]


class Conv(_Conv):
    """By windows; the interpreter's own takes minutes."""

    def _run(
        self, x: Any, w: Any, b: Any = None, auto_pad: str = "NOTSET",
        dilations: Any = None, group: int = 1, kernel_shape: Any = None,
        pads: Any = None, strides: Any = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        if auto_pad not in ("NOTSET", None):
            usual: Any = super()._run
            found: tuple[Any, ...] = usual(
                x, w, b, auto_pad=auto_pad, dilations=dilations, group=group,
                kernel_shape=kernel_shape, pads=pads, strides=strides,
            )  # fmt: skip
            return found
        seen = _windows(x, w.shape[2:], (strides, dilations, pads), 0.0)
        n, outs, each = x.shape[0], seen.shape[2 : x.ndim], w.shape[0] // group
        depth, made = w.shape[1], []
        for g in range(group):
            part = seen[:, g * depth : (g + 1) * depth]
            part = np.moveaxis(part, 1, x.ndim - 1).reshape(n, np.prod(outs), -1)
            made.append(part @ w[g * each : (g + 1) * each].reshape(each, -1).T)
        y = np.moveaxis(np.concatenate(made, -1), 2, 1).reshape(n, -1, *outs)
        row = (1, -1, *[1] * len(outs))
        return (y if b is None else y + b.reshape(row),)


class ConvTranspose(_ConvTranspose):
    """Every input value times every tap, added where it belongs; also in groups."""

    def _run(
        self, x: Any, w: Any, b: Any = None, auto_pad: str = "NOTSET",
        dilations: Any = None, group: int = 1, kernel_shape: Any = None,
        output_padding: Any = None, output_shape: Any = None, pads: Any = None,
        strides: Any = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        if auto_pad not in ("NOTSET", None) or output_shape is not None:
            usual: Any = super()._run
            found: tuple[Any, ...] = usual(
                x, w, b, auto_pad=auto_pad, dilations=dilations, group=group,
                kernel_shape=kernel_shape, output_padding=output_padding,
                output_shape=output_shape, pads=pads, strides=strides,
            )  # fmt: skip
            return found
        rank = x.ndim - 2
        ones, none = [1] * rank, [0] * rank
        strides, dilations = strides or ones, dilations or ones
        more, pads = output_padding or none, pads or none + none
        taps, sizes, axes = w.shape[2:], x.shape[2:], range(rank)
        full = [
            (sizes[i] - 1) * strides[i] + (taps[i] - 1) * dilations[i] + 1 + more[i]
            for i in axes
        ]
        y = np.zeros((x.shape[0], group, w.shape[1], *full), x.dtype)
        parts = x.reshape(x.shape[0], group, -1, *sizes)
        filters = w.reshape(group, -1, *w.shape[1:])
        for tap in np.ndindex(*taps):
            one = filters[(slice(None),) * 3 + tap]
            at = [
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, sizes, strides, strict=True)
            ]
            y[(slice(None),) * 3 + tuple(at)] += np.einsum(
                "ngi...,gio->ngo...", parts, one
            )
        cut = [slice(pads[i], full[i] - pads[rank + i]) for i in axes]
        y = y.reshape(x.shape[0], -1, *full)[(slice(None), slice(None), *cut)]
        return (y if b is None else y + b.reshape(1, -1, *ones),)


class MaxPool(_MaxPool):
    def _run(  # type: ignore[override]
        self, x: Any, **more: Any
    ) -> tuple[Any, ...]:
        plain = more.get("auto_pad") in ("NOTSET", None) and not more.get("ceil_mode")
        if not plain or len(self.onnx_node.output) > 1:
            usual: Any = super()._run
            found: tuple[Any, ...] = usual(x, **more)
            return found
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        given = [more.get(k) for k in ("strides", "dilations", "pads")]
        seen = _windows(x, more["kernel_shape"], given, least)
        return (seen.max(axis=tuple(range(x.ndim, seen.ndim))),)


class AveragePool(_AveragePool):
    def _run(  # type: ignore[override]
        self, x: Any, **more: Any
    ) -> tuple[Any, ...]:
        plain = more.get("auto_pad") in ("NOTSET", None) and not more.get("ceil_mode")
        if not plain or (any(more.get("pads") or ()) and x.dtype != np.float64):
            usual: Any = super()._run
            found: tuple[Any, ...] = usual(x, **more)
            return found
        given = [more.get(k) for k in ("strides", "dilations", "pads")]
        seen = _windows(x, more["kernel_shape"], given, 0.0)
        axes = tuple(range(x.ndim, seen.ndim))
        ones = np.ones_like(x)
        padding = 1.0 if more.get("count_include_pad") else 0.0
        count = _windows(ones, more["kernel_shape"], given, padding)
        return (seen.sum(axis=axes) / count.sum(axis=axes),)


_OPERATORS = (
    QuantizeLinear, DequantizeLinear, Cast, Conv, ConvTranspose, MaxPool, AveragePool,
)  # fmt: skip
