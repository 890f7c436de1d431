"""depthwise_conv2d of one tap, int8: a line for each channel, on any core.

A byte has 256 values, so that a multiplication, an addition and a shift are found whose
results are the layer's for all of them, whatever its rounding is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT32, Expr, Var, cast, i32, load, maximum, minimum
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess, whole
from pybuild.kernels.base.intrin import SATURATE8
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.weights import fixed
from pybuild.ops.interpret import operator_of
from pybuild.targets.target import Target

SHIFT = 20  # bits that a factor has behind its point
_MOST = 1 << 30
_CHANNELS = 4  # whose factors and offsets registers hold
_EACH = 6  # instructions of an element, about
_INPUT = np.arange(-128, 128, dtype=np.int8)
# how far from its slope a factor is looked for
_NEAR = np.array([0, *(s << n for n in range(0, 12, 2) for s in (1, -1))])

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """Return the kernel by rows and for whole tensors, if all channels have a line."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    alone = window.pointwise and node.attrs.get("strides", (1, 1)) == (1, 1)
    bytes_ = x.dtype is DType.INT8 and y.dtype is DType.INT8
    if not (alone and bytes_ and fixed(node, graph) and x.shape == y.shape):
        return []
    found = _lines(_results(node, graph), _slopes(node, graph))
    if found is None:
        return []
    factors, offsets, (low, high) = found
    tables = (
        Packed("factors", factors.astype(np.int32), order=EACH),
        Packed("offsets", offsets.astype(np.int32), order=EACH),
    )
    made = []
    ways = [(rows, calls, window.width)]
    if calls != (1, 1):
        ways.append(((whole(y), whole(x)), (1, 1), y.size // window.channels))
    for (out, source), (images, bands), pixels in ways:
        k = _kernel(pixels, window.channels, low, high)
        made.append(
            Candidate(
                func=k.finish(in_place=True),
                args=tuple(k.values),
                outputs=(out,),
                inputs=(source,),
                constants=tables,
                images=images,
                bands=bands,
                in_place=(0,),
                cost=y.size * _EACH,
            )
        )
    return made


def _results(node: Node, graph: Graph) -> Array:
    """What the layer makes of each byte in each channel, int8[256, channels]."""
    names = node.inputs[0], node.output
    channels = graph.tensor(node.output).shape[3]
    shape = (1, _INPUT.size, 1, channels)
    tensors = {n: replace(graph.tensor(n), shape=shape) for n in names}
    small = replace(graph, tensors={**graph.tensors, **tensors})
    held = [graph.constants[n] if n else None for n in node.inputs[1:]]
    given = np.broadcast_to(_INPUT[:, None], shape[1::2]).reshape(shape)
    made = operator_of(node, small).reference(node, small, [given, *held])[0]
    return made.reshape(_INPUT.size, channels)


def _slopes(node: Node, graph: Graph) -> Floats:
    """What a step of x adds to y before it is rounded, float64[channels]."""
    x, w, y = (graph.tensor(n) for n in (*node.inputs[:2], node.output))
    assert w.quant is not None
    scales = np.asarray(w.quant.scale, np.float64) * x.scale / y.scale
    weights = graph.constants[w.name].reshape(-1).astype(np.float64)
    return np.asarray(weights * scales, np.float64)


def _lines(
    results: Array, slopes: Floats
) -> tuple[Longs, Longs, tuple[int, int]] | None:
    """Return factors and offsets of all channels and the least and greatest result,
    within which sums are held; None if some channel has no such line.

    Shapes  results int8[256, channels]; factors, offsets int64[channels]
    """
    ends = int(results.min()), int(results.max())
    pairs = zip(results.T.astype(np.int64), slopes, strict=True)
    found = [_line(channel, slope, ends) for channel, slope in pairs]
    if any(line is None for line in found):
        return None
    factors, offsets = np.array(found, np.int64).T
    return factors, offsets, ends


def _line(
    results: Longs, slope: float, ends: tuple[int, int]
) -> tuple[int, int] | None:
    """The factor and the offset of a channel: (x * factor + offset) >> SHIFT, held
    within the ends, is its result for every x; that with the most room."""
    x = _INPUT.astype(np.int64)
    factors = round(slope * (1 << SHIFT)) + _NEAR[:, None]
    products = factors * x
    least = np.where(results > ends[0], (results << SHIFT) - products, -_MOST)
    most = np.where(results < ends[1], ((results + 1) << SHIFT) - 1 - products, _MOST)
    least, most = least.max(1), most.min(1)
    best = int(np.argmax(most - least))
    if most[best] < least[best]:
        return None
    factor, offset = int(factors[best, 0]), int(least[best] + most[best]) // 2
    if 128 * abs(factor) + abs(offset) >= 2 * _MOST:
        return None
    return factor, offset


def _kernel(pixels: int, channels: int, low: int, high: int) -> Builder:
    """A row of pixels, four channels at a time."""
    held = "" if (low, high) == (-128, 127) else "_held"
    doc = told(
        f"y = x * factor + offset of its channel, int8: (x * f + o) >> {SHIFT}",
        "four channels at a time, all pixels of the row; then one channel at a time",
        "held within the least and the greatest result" if held else "held within int8",
    )
    rest = "_rest" if channels % _CHANNELS and channels > _CHANNELS else ""
    k = Builder(f"lines_s8_by{min(_CHANNELS, channels)}{rest}{held}", doc)
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    factors, offsets = (k.row(n, i, INT32) for i, n in ((2, "factors"), (3, "offsets")))
    count, step = k.arg("pixels", pixels), k.arg("channels", channels)
    ends = (k.arg("low", low), k.arg("high", high)) if held else None

    def end(total: Expr) -> Expr:
        value = total >> SHIFT
        if ends is None:
            return cast(SATURATE8(value), INT8)
        return cast(minimum(maximum(value, ends[0]), ends[1]), INT8)

    def block(channel: Expr, size: int) -> None:
        lines = [
            (
                k.let("f", load(factors, channel + i)),
                k.let("o", load(offsets, channel + i)),
            )
            for i in range(size)
        ]
        at: Var = k.let("at", channel)
        with k.loop("pixel", count):
            values = [i32(load(x, at + i)) for i in range(size)]
            for i, (value, (f, o)) in enumerate(zip(values, lines, strict=True)):
                k.store(y, at + i, end(value * f + o))
            k.assign(at, at + step)

    size = min(_CHANNELS, channels)
    full = channels - channels % size
    with k.loop(
        "channel", step - channels % size if rest else step, 0, size
    ) as channel:
        block(channel, size)
    if rest:
        with k.loop("channel", step, step - (channels - full)) as channel:
            block(channel, 1)
    return k
