"""Fully connected layers and 1x1 convolutions whose int8 weights fit 4 bits: two in a
byte of flash, told apart as they are used. Half the weights at more instructions:
`--optimise size` takes it.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import Finish
from pybuild.kernels.layers.weights import (
    WEIGHTS4,
    constant,
    epilogue,
    fits_int4,
    fixed,
)
from pybuild.records import dataclass
from pybuild.targets.target import Target

BLOCK = 2  # output channels together: each input is read once for them


@dataclass(frozen=True)
class Layer:
    """A layer as its kernel sees it."""

    window: Window
    finish: Finish

    @property
    def odd(self) -> bool:
        return self.window.channels % 2 == 1

    @property
    def name(self) -> str:
        parts = ("dense4_s8", "odd" if self.odd else "", self.finish.key)
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        return told(
            "fully connected layer or 1x1 convolution, int8 x 4 bits, int32 sums",
            f"pixel by pixel; {BLOCK} output channels at a time, two taps a byte of "
            "weights; weights forward",
            self.finish.words,
        )


def pack(kernels: Array) -> Packed:
    """Weights [O, taps] as bytes: a tap in the lower half, the next in the upper."""
    even = np.pad(kernels, ((0, 0), (0, kernels.shape[1] % 2))).astype(np.uint8)
    both = ((even[:, 0::2] & 15) | (even[:, 1::2] << 4)).view(np.int8)
    return Packed(
        WEIGHTS4, both, order="output channels, two taps a byte, the lower first"
    )


def kernel(layer: Layer) -> Builder:
    """y[i,o] = finish(bias[o] + sum(x[i] * w[o]))

    Shapes  x [pixels,C], y [pixels,O]; weights of `pack`; bias int32[O]
    """
    k, w = Builder(layer.name, layer.doc), layer.window
    y = k.row("y", 0, INT8, writable=True)
    source = k.row("x", 1, INT8)
    weights, bias = k.row("weights", 2, INT8), k.row("bias", 3, INT32)
    finish = layer.finish.bind(k, const(4))
    pixels, outputs = k.arg("pixels", w.out_width), k.arg("outputs", w.out_channels)
    inputs = k.arg("inputs", w.channels)
    row = k.let("row", (inputs + 1) / 2)
    with k.loop("pixel", pixels) as pixel:
        x = k.let("from", offset(source, pixel * inputs))
        to = k.let("to", offset(y, pixel * outputs))
        with k.loop("first", outputs, 0, BLOCK) as first:
            # the last block is computed over the end of the one before
            channel = k.let("channel", minimum(first, outputs - BLOCK))
            at = k.let("at", offset(weights, channel * row))
            sums = [k.let(f"sum{j}", load(bias, channel + j)) for j in range(BLOCK)]
            with k.loop("pair", inputs / 2) as pair:
                values = [
                    k.let(f"value{h}", i32(load(x, pair * 2 + h))) for h in (0, 1)
                ]
                for j, total in enumerate(sums):
                    both = k.let("both", i32(load(at, pair + row * j)))
                    _add(k, total, values[0], _lower(both))
                    _add(k, total, values[1], both >> const(4))
            if layer.odd:
                value = k.let("value", i32(load(x, inputs - 1)))
                for j, total in enumerate(sums):
                    _add(k, total, value, _lower(i32(load(at, row * (j + 1) - 1))))
            for j, total in enumerate(sums):
                k.store(to, channel + j, finish.apply(total, channel + j))
    return k


def _lower(both: Expr) -> Expr:
    """The lower half, with its sign."""
    return i32(cast(both * 16, INT8)) >> const(4)


def _add(k: Builder, total: Var, value: Expr, weight: Expr) -> None:
    k.assign(total, total + value * weight)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    plain = window.pointwise and window.stride_w == 1 and calls == (1, 1)
    if graph.tensor(node.output).dtype is not INT8 or not plain:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    if not (fixed(node, graph) and fits_int4(kernels)) or window.groups > 1:
        return []
    if window.out_channels < BLOCK or window.channels < 2:
        return []
    finish, bias, _ = epilogue(node, graph, kernels)
    layer = Layer(window, finish)
    k = kernel(layer)
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(
                pack(kernels),
                Packed("bias", bias, order=EACH),
                *finish.tables(),
            ),
            cost=window.out_width * window.out_channels * (6 * window.channels + 24),
        )
    ]
