"""LOG_SOFTMAX of int8 in fixed point, step by step as LiteRT's reference kernel has it.

The exponentials of a row come from a table.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators.fixed import whole_scale
from pybuild.ir.graph import Tensor
from pybuild.ops.fixed_point.quant import quantize_multiplier
from pybuild.ops.softmax import exponentials, scaled_differences

_MOST = 4095  # in a row: their sum has 12 bits before the point
_TOP = (1 << 31) - 1


def log_softmax(flow: Flow, x: Tensor) -> Tensor:
    """LOG_SOFTMAX of int8, whose output has a scale of 1/16; x has any scale.

    Errors  BuildError for another output scale, and for rows of more than 4095
    Source  LiteRT reference_integer_ops LogSoftmax
    """
    y, count = flow.wanted(), x.shape[-1]
    whole_scale(flow, x, y)
    if (y.scale, y.zero_point) != (0.0625, 127):
        what = f"the output has scale {y.scale:g} and zero point {y.zero_point}"
        raise flow.call.error(what, "quantise it with 1/16 and 127")
    if count > _MOST:
        raise flow.call.error(f"{count} values in a row, at most {_MOST} in int8")
    scaled, inside = scaled_differences(x.scale)
    q, last = flow.cast(flow.plain(x), DType.INT32), (len(x.shape) - 1,)
    less = flow.sub(flow.reduce("max", q, last), q)
    exps = (exponentials(x.scale) + 2048) >> 12  # Q12.19
    total = flow.reduce("sum", _found(flow, exps, less), last)
    log = flow.map("fixed_log", total)
    made = flow.sub(_found(flow, np.where(inside, scaled, 0), less), log)
    # shifted by 22 bits, ties away from zero
    below = flow.map("shift_right", made, flow.const(31, made))
    made = flow.add(flow.plus(made, 1 << 21), below)
    made = flow.map("shift_right", made, flow.const(22, made))
    made = flow.held(flow.plus(made, 127), -128, 127)
    near = flow.map("less", less, _reach(flow, log, x.scale, int(inside.sum())))
    return flow.cast(flow.map("where", near, made, flow.const(-128, made)), DType.INT8)


def _found(flow: Flow, table: object, places: Tensor) -> Tensor:
    return flow.gather(flow.const(table, DType.INT32), places, 0)


def _reach(flow: Flow, log: Tensor, scale: float, inside: int) -> Tensor:
    """Return how far below the maximum a value must be to give the least byte.

    inside  how many differences the fixed point reaches
    """
    multiplier, left = quantize_multiplier(min(scale * (1 << 26), _TOP))
    back = (1 << (31 - left)) / multiplier
    lowest = flow.plus(log, -(1 << 31))
    steps = flow.map(
        "requantize", lowest,
        *(flow.const(n, DType.INT32) for n in quantize_multiplier(back)),
    )  # fmt: skip
    return flow.held(flow.sub(flow.const(0, steps), steps), None, inside)
