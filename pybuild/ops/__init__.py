"""The meaning of every operator: one table of all families.

Knows the Graph IR; no file format, kernel or plan.
"""

from __future__ import annotations

from pybuild.ops import (
    accumulate,
    act,
    contract,
    conv,
    convert,
    decide,
    dense,
    detect,
    eltwise,
    group_norm,
    hybrid,
    index,
    map,
    norm,
    pool,
    recurrent,
    reduce,
    shape,
    signal,
    softmax,
    svdf,
)
from pybuild.ops.base import conv_types, function, repeat
from pybuild.ops.base.operator import Operator, nothing
from pybuild.ops.sensors import halving, image

_UNARY = Operator(act.infer, act.reference, nothing)
_ADD = Operator(eltwise.infer, eltwise.add, nothing)

OPERATORS: dict[str, Operator] = {
    "conv2d": Operator(conv_types.infer_conv2d, conv.conv2d, conv.macs_conv2d),
    "depthwise_conv2d": Operator(
        conv_types.infer_depthwise, conv.depthwise, conv.macs_depthwise
    ),
    "dense": Operator(dense.infer, dense.reference, dense.macs),
    "add": _ADD,
    "sub": _ADD,
    "mul": Operator(eltwise.infer, eltwise.mul, nothing),
    "prelu": Operator(eltwise.infer_prelu, eltwise.prelu, nothing),
    "avg_pool2d": Operator(pool.infer, pool.avg_pool2d, nothing),
    "max_pool2d": Operator(pool.infer, pool.max_pool2d, nothing),
    "resize_bilinear": Operator(pool.infer_resize, pool.resize_bilinear, nothing),
    "mean": Operator(reduce.infer, reduce.reference, nothing),
    "softmax": Operator(softmax.infer, softmax.reference, nothing),
    "attention": Operator(
        softmax.infer_attention, softmax.attention, softmax.macs_attention
    ),
    "logistic": _UNARY,
    "tanh": _UNARY,
    "clip": _UNARY,
    "leaky_relu": _UNARY,
    "pad": Operator(shape.infer_pad, shape.pad, nothing),
    "concat": Operator(shape.infer_concat, shape.concat, nothing),
    "shift": Operator(shape.infer_shift, shape.shift, nothing),
    "reshape": Operator(shape.infer_reshape, shape.reshape, nothing),
    "transpose": Operator(shape.infer_transpose, shape.transpose, nothing),
    "slice": Operator(shape.infer_slice, shape.slice_, nothing),
    "quantize": Operator(convert.infer_quantize, convert.quantize, nothing),
    "dequantize": Operator(convert.infer_dequantize, convert.dequantize, nothing),
    "copy": Operator(convert.infer_copy, convert.copy, nothing),
    shape.ASSIGN: Operator(convert.infer_copy, convert.copy, nothing),
    "map": Operator(map.infer, map.reference, nothing),
    "reduce": Operator(accumulate.infer_reduce, accumulate.reduce, nothing),
    "arg_reduce": Operator(accumulate.infer_arg, accumulate.arg_reduce, nothing),
    "cumulate": Operator(accumulate.infer_cumulate, accumulate.cumulate, nothing),
    "gather": Operator(index.infer_gather, index.gather, nothing),
    "lookup": Operator(index.infer_lookup, index.lookup, nothing),
    "scatter": Operator(index.infer_scatter, index.scatter, nothing),
    "svdf": Operator(svdf.infer_svdf, svdf.svdf, svdf.macs),
    "top_k": Operator(index.infer_top_k, index.top_k, nothing),
    "distinct": Operator(index.infer_distinct, index.distinct, nothing),
    "roi_align": Operator(detect.infer_roi_align, detect.roi_align, nothing),
    "places": Operator(index.infer_places, index.places, nothing),
    "lstm": Operator(recurrent.infer_lstm, recurrent.lstm, recurrent.macs),
    "suppress": Operator(detect.infer_suppress, detect.suppress, nothing),
    "matmul": Operator(contract.infer_matmul, contract.matmul, contract.macs_matmul),
    "conv": Operator(contract.infer_conv, contract.conv, contract.macs_conv),
    "quantize_dynamic": Operator(hybrid.infer_quantize, hybrid.quantize, nothing),
    "conv2d_sums": Operator(hybrid.infer_conv2d, hybrid.conv2d, hybrid.macs_sums),
    "dense_sums": Operator(hybrid.infer_dense, hybrid.dense, hybrid.macs_sums),
    "depthwise_conv2d_sums": Operator(
        hybrid.infer_depthwise, hybrid.depthwise, hybrid.macs_sums
    ),
    "scale_sums": Operator(hybrid.infer_scale, hybrid.scale_sums, nothing),
    "norm": Operator(norm.infer, norm.reference, nothing),
    "group_norm": Operator(group_norm.infer, group_norm.reference, nothing),
    "image": Operator(image.infer_image, image.image, nothing),
    "rfft": Operator(halving.infer_fft, halving.fft, nothing),
    **{n: Operator(*both, nothing) for n, both in signal.SIGNAL.items()},
    **{n: Operator(*both, nothing) for n, both in decide.DECIDE.items()},
    function.CALL: Operator(function.infer, function.reference, nothing),
}
# its body has operators of this table
OPERATORS["repeat"] = repeat.operator(OPERATORS)
