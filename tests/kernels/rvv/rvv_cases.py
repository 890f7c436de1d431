"""Layers for the kernels on RISC-V's vectors: those of int16, of few output channels,
in groups, products of two tensors, and softmax."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Quant
from pybuild.ir.loop import INT16
from tests.kernels import test_int16
from tests.kernels.kernel_cases import (
    INT8,
    INT32,
    Case,
    case,
    computed_product,
    tensor,
)
from tests.kernels.test_int16 import QUIET, TIES

_CLAMPS = ((None, None), (0.0, None), (-0.5, 0.7))
_PRODUCTS = ((5, 17, 7), (4, 8, 40), (1, 5, 33), (6, 31, 16))


def halves(numbers: Iterable[int]) -> list[Case]:
    """Layers of int16 by each rule of rounding, with quiet weights and ties; some of
    ONNX's rule have zero points."""
    found = []
    for number in numbers:
        kind = (QUIET, "", TIES)[number % 3]
        dense = test_int16.LAYERS[number][0] == "dense"
        rule = ("away" if dense else "double") if number % 2 else "even"
        found.append(test_int16.layer(number, "wide", kind))
        zeros = test_int16.ZEROS[number % 5] if number % 4 == 0 else (0, 0)
        found.append(test_int16.layer(number, rule, kind, zeros))
    return found


def few_channels(seed: int) -> Case:
    """A convolution of few output channels; of odd seeds of int16."""
    chance = np.random.default_rng((6, seed))
    outs, inside = int(chance.integers(2, 16)), (1, 3, 2, 6)[seed % 4]
    kernel, stride = (3, 5, 1, 2)[seed // 2 % 4], 1 + seed // 4 % 2
    dilation, pad = 1 + (seed % 5 == 3), int(chance.integers(0, kernel))
    shape = (1, kernel + 3 * dilation, int(chance.integers(20, 50)), inside)
    weights = chance.integers(-127, 128, (outs, kernel, kernel, inside))
    scales = tuple(float(s) for s in chance.uniform(0.002, 0.02, outs))
    bias = chance.integers(-3000, 3000, outs).astype(np.int32)
    elem = INT16 if seed % 2 else INT8
    zero = 0 if seed % 2 else int(chance.integers(-128, 128))
    unit = 2.0**-8 if seed % 2 else 1.0
    quant = Quant(scales, (0,) * outs, 0)
    inputs = (tensor(shape, elem, 0.05 * unit, zero), (weights.shape, INT8, quant),
              tensor((outs,), INT32))  # fmt: skip
    rules = ("wide", "double") if seed % 2 else ("double", "single", "away")
    return case("conv2d", inputs, tensor((), elem, 0.3 * unit, zero),
                {1: weights.astype(np.int8), 2: bias},
                rounding=rules[seed // 2 % len(rules)], clamp=(None, None),
                strides=(stride, stride), dilations=(dilation, dilation),
                pads=(pad, pad, pad, kernel - 1 - pad))  # fmt: skip


def two_of_a_row(seed: int) -> Case:
    """add, sub or mul; of odd seeds of int16, which have no cheaper form."""
    chance = np.random.default_rng((21, seed))
    elem = INT16 if seed % 2 else INT8
    zeros = [0 if seed % 2 else int(z) for z in chance.integers(-128, 128, 3)]
    unit, op = 2.0**-8 if seed % 2 else 1.0, ("add", "sub", "mul")[seed % 3]
    channels = int(chance.choice([8, 19, 32]))
    shape = (1, 3, 5, channels)
    other = (shape, (1, 1, 1, 1), (1, 1, 1, channels))[seed // 6 % 3]
    far = seed % 4 == 2  # scales so far apart that int8 has no cheap form
    a = tensor(shape, elem, 0.05 * unit * (64.0 if far else 1.0), zeros[0])
    b = tensor(other, elem, float(chance.uniform(0.01, 0.1)) * unit, zeros[1])
    scale = 0.03 if op == "mul" else 0.15
    y = tensor((), elem, scale * unit, zeros[2])
    return case(op, (a, b) if seed % 5 else (b, a), y, clamp=_CLAMPS[seed // 2 % 3],
                rounding=("double", "single")[seed // 3 % 2])  # fmt: skip


def product(number: int) -> Case:
    """A matmul of two computed tensors by LiteRT's rule."""
    one = computed_product(INT8, _PRODUCTS[number // 2], 2, transposed=number % 2 > 0)
    node = one.node.with_attrs(rounding="double")
    return replace(one, node=node, graph=replace(one.graph, nodes=(node,)))


def shares(number: int) -> Case:
    """A softmax by LiteRT's rule."""
    shape = ((2, 3, 12), (1, 300), (4, 33))[number % 3]
    x = tensor(shape, INT8, (0.1, 0.6, 0.004)[number // 3 % 3], 9)
    return case("softmax", (x,), tensor((), INT8, 1 / 256, -128),
                axis=len(shape) - 1, beta=1.0, rounding="double")  # fmt: skip


def others(seeds: range) -> list[Case]:
    """One of each for each seed."""
    makers = (few_channels, two_of_a_row, lambda n: product(n % 8), shares)
    return [make(seed) for make in makers for seed in seeds]
