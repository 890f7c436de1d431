"""Random int8 layers, as kernels on vectors may meet them."""

from __future__ import annotations

import numpy as np

from pybuild.ir.graph import Quant
from tests.kernels.kernel_cases import INT8, INT32, Case, case, tensor

OPERATORS = ("conv2d", "depthwise_conv2d", "dense")
# without weights
PLAIN = ("max_pool2d", "avg_pool2d", "mean", "add", "mul")
# of the first ones, where a window is more than a vector; in groups; with several
# outputs of each channel; of rows of six pixels and more; woven in twos
FORMS = {"wide": "depthwise_conv2d", "grouped": "conv2d",
         "several": "depthwise_conv2d", "long": "depthwise_conv2d",
         "twos": "depthwise_conv2d"}  # fmt: skip
OTHERS = (*PLAIN, *FORMS)
RULES = ("double", "away", "single")
# epilogues: no clamp but int8's own ends; ReLU at the zero point; a clamp within
_ENDINGS = ((None, None), (0.0, None), (-3.0, 4.0))


def layer(op: str, seed: int) -> Case:
    """A layer of that seed; equal for equal arguments."""
    if op in PLAIN:
        return _plain(op, seed)
    form, op = op, FORMS.get(op, op)
    known = OPERATORS.index(op) if form == op else 5 + list(FORMS).index(form)
    chance = np.random.default_rng((known, seed))
    rule, clamp = RULES[seed % 3], _ENDINGS[seed // 3 % 3]
    if op == "dense":
        batch, taps = int(chance.integers(1, 4)), int(chance.integers(3, 70))
        outs = int(chance.integers(1, 14))
        shapes = (batch, taps), (outs, taps)
        attrs: dict[str, object] = {}
    else:
        shapes, attrs = _spatial(form, chance)
        outs = shapes[1][0 if op == "conv2d" else 3 - 1]
    axis = 2 if op == "depthwise_conv2d" else 0
    scales = tuple(float(s) for s in chance.uniform(0.002, 0.02, outs))
    weights = chance.integers(-127, 128, shapes[1]).astype(np.int8)
    bias = chance.integers(-3000, 3000, outs).astype(np.int32)
    zero = -128 if clamp == (0.0, None) else int(chance.integers(-40, 40))
    inputs = (
        tensor(shapes[0], INT8, 0.05, int(chance.integers(-128, 100))),
        (shapes[1], INT8, Quant(scales, (0,) * outs, axis)),
        tensor((outs,), INT32),
    )
    out = tensor((), INT8, float(chance.uniform(0.1, 0.6)), zero)
    return case(op, inputs, out, {1: weights, 2: bias}, rounding=rule,
                clamp=clamp, **attrs)  # fmt: skip


def _plain(op: str, seed: int) -> Case:
    """Without weights; the rounding also to even."""
    chance = np.random.default_rng((9, PLAIN.index(op), seed))
    rule, clamp = (*RULES, "even")[seed % 4], _ENDINGS[seed // 4 % 3]
    channels = int(chance.choice([4, 6, 8, 16, 19, 32]))
    x = tensor((1, *chance.integers(4, 9, 2).tolist(), channels), INT8, 0.05,
               int(chance.integers(-128, 100)))  # fmt: skip
    zero = -128 if clamp == (0.0, None) else int(chance.integers(-40, 40))
    other = tensor((), INT8, float(chance.uniform(0.03, 0.08)), zero)
    if op == "mean":
        return case(op, (x,), other, axes=(1, 2), keepdims=bool(seed % 2),
                    rounding=rule)  # fmt: skip
    if op in ("add", "mul"):
        # ties
        tied = op == "add" and seed % 8 in (3, 4)
        other = tensor((), INT8, 0.05, zero) if tied else other
        shapes = ((1, 1, 1, 1), (1, 1, 1, channels), (x[0][0], 1, *x[0][2:]))
        shape = x[0] if seed % 2 else shapes[seed // 2 % 3]
        scale = 0.025 if tied else 0.04
        b = tensor(shape, INT8, scale, int(chance.integers(-128, 100)))
        pair = (b, x) if seed % 5 == 0 else (x, b)
        return case(op, pair, other, rounding=rule, clamp=clamp)
    kernel = tuple(int(n) for n in chance.integers(1, 5, 2))
    pads = tuple(int(chance.integers(0, n)) for n in kernel) * 2
    if op == "avg_pool2d" and seed % 3:
        pads = (0, 0, 0, 0)
    stride = int(chance.integers(1, 3))
    out = x if op == "max_pool2d" or seed % 5 == 0 else other
    if op == "avg_pool2d" and seed % 8 == 3:  # ties
        kernel, pads = ((2, 2), (2, 4))[seed // 8 % 2], (0, 0, 0, 0)
        out = tensor((), INT8, 0.05, zero)
    return case(op, (x,), out, kernel=kernel, strides=(stride, stride), pads=pads,
                rounding=rule, clamp=clamp, count_include_pad=True)  # fmt: skip


def _spatial(
    op: str, chance: np.random.Generator
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], dict[str, object]]:
    """Shapes of input and weights, and the attributes of a window."""
    images = 1 + int(chance.integers(5) == 0)
    kernel = tuple(int(n) for n in chance.integers(1, 5, 2))
    if chance.integers(3) == 0:
        kernel = (1, 1)
    stride = int(chance.integers(1, 3))
    dilation = 1 + int(chance.integers(4) == 0)
    groups = 1
    depthwise = op in ("depthwise_conv2d", "wide", "several", "long", "twos")
    if op == "wide":
        channels, outs = int(chance.integers(4, 24)), 0
        kernel = [(5, 5), (7, 3), (1, 9), (9, 1), (6, 7), (2, 3), (3, 5)][
            int(chance.integers(7))
        ]
        dilations = (1, 2) if kernel == (2, 3) else (dilation, 1)
    elif op == "twos":
        channels, outs = int(chance.choice([4, 9, 16, 17, 24, 32, 39])), 0
        kernel = [(3, 3), (3, 3), (5, 5), (1, 5), (3, 5)][int(chance.integers(5))]
        stride = 2 if kernel == (3, 3) else stride
        dilations = (dilation, 1)
    elif op == "grouped":
        groups, inside = int(chance.integers(2, 5)), int(chance.choice([2, 4, 9, 16]))
        channels, outs = groups * inside, groups * int(chance.integers(1, 10))
        dilations = (dilation, 1 + int(chance.integers(5) == 0))
    elif op == "several":
        channels, outs = int(chance.integers(1, 7)), int(chance.integers(2, 6))
        dilations = (dilation, 1)
    elif depthwise:
        channels, outs = int(chance.integers(4, 40)), 0
        dilations = (dilation, 1)
    else:
        channels, outs = int(chance.choice([1, 2, 3, 8, 15, 16, 19, 32, 64])), 0
        outs = int(chance.choice([1, 2, 3, *range(4, 22)]))
        dilations = (dilation, 1 + int(chance.integers(5) == 0))
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    pads = [int(chance.integers(0, r + 1)) for r in reach] * 2
    sides = [int(chance.integers(r + 2, r + 9)) for r in reach]
    if op == "long":
        stride = int(chance.integers(1, 3))
        sides[1] = stride * int(chance.integers(6, 25)) + reach[1] - 2 * pads[1]
    x = (images, *sides, channels)
    w = (
        (*kernel, channels * max(outs, 1))
        if depthwise
        else (outs, *kernel, channels // groups)
    )
    attrs: dict[str, object] = {
        "strides": (stride, stride),
        "dilations": dilations,
        "pads": tuple(pads),
    }
    if groups > 1:
        attrs["groups"] = groups
    return (x, w), attrs
