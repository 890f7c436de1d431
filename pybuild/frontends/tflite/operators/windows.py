"""Windows that the layers' own kernels lack: the average of uint8, and the root mean
square.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators import layers


def average_pool2d(call: Call) -> None:
    """Emits an average pool; for uint8, ties go up, because the file's own integers are
    never negative."""
    flow = Flow(call)
    x = flow.arg(0)
    if not call.builder.has_twin(call.index(0)) or x.quant is None:
        layers.average_pool2d(call)
        return
    y, kernel = flow.wanted(), layers.kernel_of(call)
    if x.quant != y.quant:
        raise call.error("input and output have different scales")
    window = layers.window(call, x, kernel)
    top, left, bottom, right = window["pads"]
    attrs = {
        "strides": window["strides"],
        "dilations": (1, 1),
        "pads": ((top, bottom), (left, right)),
        "groups": 1,
    }
    n, h, w, c = x.shape
    planes = flow.transpose(flow.plus(flow.cast(flow.plain(x), DType.INT32), 128),
                            (0, 3, 1, 2))  # fmt: skip
    ones = flow.const(np.ones((1, 1, *kernel)), DType.INT32)
    sums = flow.node("conv", [flow.reshape(planes, (n * c, 1, h, w)), ones], attrs)
    cells = flow.const(np.ones((1, 1, h, w)), DType.INT32)
    counts = flow.known(flow.node("conv", [cells, ones], attrs))
    if counts is None:
        raise call.error(f"{h} x {w} is too large for the average of uint8")
    sums = flow.add(sums, flow.const(counts // 2, DType.INT32))
    mean = flow.map("divide", sums, flow.const(counts, DType.INT32))
    mean = flow.reshape(mean, (n, c, *mean.shape[2:]))
    mean = flow.transpose(mean, (0, 2, 3, 1))
    made = flow.plus(mean, -128 - y.zero_point)
    flow.give(flow.quantised(made, y, layers.fused(call).get("clamp", (None, None))))


def l2_pool2d(call: Call) -> None:
    """sqrt(mean(x * x)) of float32"""
    flow = Flow(call)
    x = flow.arg(0)
    if x.dtype is not DType.FLOAT32:
        raise call.error(f"'{x.name}' is {x.dtype.value}", "LiteRT has it for float32")
    kernel = layers.kernel_of(call)
    window = layers.window(call, x, kernel)
    del window["dilations"]
    attrs = {"kernel": kernel, **window, "count_include_pad": False}
    mean = flow.node("avg_pool2d", [flow.mul(x, x)], attrs)
    made = flow.map("sqrt", mean)
    flow.give(flow.held(made, *layers.fused(call).get("clamp", (None, None))))
