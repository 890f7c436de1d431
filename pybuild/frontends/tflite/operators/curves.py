"""int16 functions as 513 points with linear interpolation, by LiteRT's own
arithmetic.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators import tables
from pybuild.frontends.tflite.operators.fixed import whole_scale
from pybuild.ir.graph import Tensor


def curve(fn: str, flow: Flow, x: Tensor) -> Tensor:
    """Errors  BuildError where x or y is not quantised as a whole"""
    y = flow.wanted()
    whole_scale(flow, x, y)
    points = flow.const(tables.points(fn, x, y), DType.INT32)
    whole = flow.cast(flow.plain(x), DType.INT32)
    place = flow.map("shift_right", flow.plus(whole, 1 << 15), flow.const(7, whole))
    here = flow.gather(points, place, 0)
    rise = flow.sub(flow.gather(points, flow.plus(place, 1), 0), here)
    part = flow.map("bit_and", whole, flow.const(127, whole))
    more = flow.plus(flow.mul(rise, part), 64)
    made = flow.add(here, flow.map("shift_right", more, flow.const(7, more)))
    return flow.cast(made, DType.INT16)
