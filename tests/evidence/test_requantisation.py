"""The cheap ends of layers equal the rule, at every sum that a layer can reach, by a
second implementation: of gemmlowp's and LiteRT's own words, not of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import pybuild
from pybuild.dtype import DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.epilogues.affine import Affine, affine_or_exact
from pybuild.ops.conv import ConvParameters, conv_parameters
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
INT32 = -(1 << 31), (1 << 31) - 1
PIECE = 1 << 20


def rule(acc: Ints, multiplier: int, shift: int, rounding: str) -> Ints:
    """By division and remainder, where the product is tried with the sign taken off.

    Source  gemmlowp SaturatingRoundingDoublingHighMul, RoundingDivideByPOT; LiteRT
            MultiplyByQuantizedMultiplier, single rounding
    """
    if rounding == "double":
        product = acc * (1 << max(shift, 0)) * multiplier
        nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
        high = np.sign(nudged) * (np.abs(nudged) // (1 << 31))
        unit = 1 << max(-shift, 0)
        return np.sign(high) * ((np.abs(high) + unit // 2) // unit)
    unit = 1 << (31 - shift)
    whole, rest = np.divmod(acc * multiplier, unit)
    if rounding == "single":
        return whole + (2 * rest >= unit)
    if rounding == "away":
        return whole + ((2 * rest > unit) | ((2 * rest == unit) & (acc >= 0)))
    return whole + ((2 * rest > unit) | ((2 * rest == unit) & (whole % 2 == 1)))


def cheap(acc: Ints, form: Affine, channel: int) -> Ints:
    """As a core computes it: 32 bits, and the high half of one product."""
    offset = form.offsets[channel]
    if form.below is not None:
        offset = offset + np.where(acc < 0, form.below[channel], 0)
    first = 256 * acc + offset
    assert INT32[0] <= first.min() and first.max() <= INT32[1]
    high = first * int(form.multipliers[channel]) // (1 << 32) + form.base
    assert INT32[0] <= high.min() and high.max() <= INT32[1]
    return np.clip(high // (1 << form.shift), form.low, form.high)


def layers(graph: Graph) -> Iterator[tuple[Node, ConvParameters, Ints, Ints]]:
    """With the least and the greatest sum of each channel, by its weights."""
    for node in graph.nodes:
        if node.op not in ("conv2d", "depthwise_conv2d", "dense"):
            continue
        if graph.tensor(node.inputs[0]).dtype is not DType.INT8:
            continue
        made = conv_parameters(node, graph)
        weights = graph.constants[node.inputs[1]].astype(np.int64)
        if node.op == "depthwise_conv2d":
            weights = np.moveaxis(weights, -1, 0)
        rows = weights.reshape(len(made.multipliers) or len(weights), -1)
        bias = graph.constants[node.inputs[2]].astype(np.int64)
        at = [rows * (end - made.x_zero) for end in (-128, 127)]
        yield node, made, np.minimum(*at).sum(1) + bias, np.maximum(*at).sum(1) + bias


def wrong(form: Affine, made: ConvParameters, channel: int, low: int, high: int) -> int:
    """Sums of a channel at which the two differ."""
    multiplier, shift = made.multipliers[channel], made.shifts[channel]
    count = 0
    for begin in range(low, high + 1, PIECE):
        acc = np.arange(begin, min(begin + PIECE, high + 1))
        wanted = rule(acc, multiplier, shift, made.rounding) + made.y_zero
        held = np.clip(wanted, made.low, made.high)
        count += int(np.count_nonzero(held != cheap(acc, form, channel)))
    return count


@pytest.mark.parametrize("rounding", ["double", "single", "away"])
def test_every_sum_of_every_channel(rounding: str) -> None:
    """Some millions of sums: all that the layers of digits can reach."""
    graph = pybuild.load(DIGITS).build(target="cortex-m4").plan.graph
    sums = channels = 0
    for node, own, low, high in layers(graph):
        made = replace(own, rounding=rounding)
        form = affine_or_exact(made, low, high)
        if not isinstance(form, Affine):
            continue  # all of it ends by the rule itself
        for channel in range(len(low)):
            if form.multipliers[channel] < 0:
                continue  # it ends by the rule itself
            ends = int(low[channel]), int(high[channel])
            assert wrong(form, made, channel, *ends) == 0, (node.name, channel)
            sums += ends[1] - ends[0] + 1
            channels += 1
    assert channels >= 30 and sums > 3_000_000, (channels, sums)


def test_an_offset_beside_is_noticed() -> None:
    graph = pybuild.load(DIGITS).build(target="cortex-m4").plan.graph
    _, made, low, high = next(layers(graph))
    form = affine_or_exact(made, low, high)
    assert isinstance(form, Affine)
    step = (1 << 32 >> 8) // int(form.multipliers[0]) << 8
    moved = replace(form, offsets=form.offsets + max(step, 256) * 8)
    assert wrong(moved, made, 0, int(low[0]), int(high[0])) > 0
