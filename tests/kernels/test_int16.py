"""Layers of int16: sums of 32 bits only where proven, scaled by all of float64; each
fast kernel on every core under every rule equals numpy, through LLVM and as C under
sanitizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.kernels.layers.sums16 import MOST_WEIGHTS, turns_of_run
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import check_types, interpret
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import (
    Job,
    must_be_equal,
    named_jobs,
    part_of,
    run_c,
    run_llvm,
)
from tests.kernels.kernel_cases import INT8, Case, case, tensor

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
FAST = ("_dsp_", "_mve_", "_block")
PARTS = 8  # of all jobs, so that workers share them
# x, weights, strides, dilations
LAYERS = (
    ("conv2d", (1, 5, 6, 8), (6, 3, 3, 8), 1, 1),
    ("conv2d", (1, 6, 7, 3), (9, 3, 3, 3), 2, 1),
    ("conv2d", (1, 7, 6, 5), (5, 3, 3, 5), 1, 2),
    ("conv2d", (1, 3, 5, 16), (7, 1, 1, 16), 1, 1),
    ("conv2d", (1, 4, 5, 21), (2, 1, 1, 21), 2, 1),
    ("conv2d", (1, 3, 3, 600), (5, 1, 1, 600), 1, 1),
    ("conv2d", (1, 3, 5, 76), (4, 3, 3, 76), 1, 1),
    ("conv2d", (1, 4, 4, 1), (8, 3, 3, 1), 1, 1),
    ("conv2d", (1, 4, 5, 8), (1, 3, 3, 8), 1, 1),
    ("conv2d", (1, 4, 5, 12), (8, 3, 3, 6), 1, 1),
    ("dense", (1, 530), (9, 530), 1, 1),
    ("dense", (3, 24), (10, 24), 1, 1),
    ("depthwise_conv2d", (1, 6, 7, 8), (3, 3, 8), 1, 1),
    ("depthwise_conv2d", (1, 7, 8, 5), (5, 5, 5), 2, 1),
    ("depthwise_conv2d", (1, 9, 9, 6), (3, 3, 6), 1, 2),
    ("depthwise_conv2d", (1, 7, 9, 16), (7, 7, 16), 1, 1),
    ("depthwise_conv2d", (1, 6, 6, 4), (3, 3, 8), 1, 1),
    ("depthwise_conv2d", (1, 12, 3, 32), (3, 3, 32), 2, 1),
)
# without padding, of one row: vectors have no copy there, others the plain kernel
ROWS = (
    ("depthwise_conv2d", (1, 4, 21, 12), (1, 5, 12), 1, 1),
    ("depthwise_conv2d", (1, 3, 24, 10), (1, 3, 10), 2, 2),
)
# of which vectors have planes of channels: rows of one pixel, of two fours, of
# eights and a four, of eights that overlap; channels that no eight divides
PLANES = (
    ("depthwise_conv2d", (1, 3, 1, 9), (3, 3, 9), 1, 1),
    ("depthwise_conv2d", (1, 4, 6, 8), (5, 5, 8), 1, 1),
    ("depthwise_conv2d", (1, 3, 12, 16), (3, 3, 16), 1, 1),
    ("depthwise_conv2d", (1, 3, 14, 11), (3, 3, 11), 1, 1),
    ("depthwise_conv2d", (1, 4, 16, 8), (3, 3, 8), 2, 1),
    ("depthwise_conv2d", (1, 4, 10, 8), (2, 2, 8), 3, 1),
)
RULES = ("wide", "double")
LOUD, QUIET, GREAT, FAR, TIES = "loud", "quiet", "great", "far", "ties"
# of the input, of the output
ZEROS = ((-32768, 301), (32767, -32768), (-7, 32767), (4097, 0), (0, -12345))


def _dense(weights: Array, bias: int, scale: float, y_scale: float = 1.0) -> Graph:
    """One row of inputs, one scale; the bias in int64."""
    outputs, inputs = weights.shape
    tensors = {
        "x": Tensor("x", (1, inputs), DType.INT16, Quant((1.0,))),
        "w": Tensor("w", weights.shape, DType.INT8, Quant((scale,))),
        "b": Tensor("b", (outputs,), DType.INT64, Quant((scale,))),
        "y": Tensor("y", (1, outputs), DType.INT16, Quant((y_scale,))),
    }
    constants = {"w": weights, "b": np.full(outputs, bias, np.int64)}
    node = Node("dense", "fc", ("x", "w", "b"), ("y",))
    return Graph("fc", "fc.tflite", (node,), tensors, ("x",), ("y",), constants)


def _total(graph: Graph) -> DType:
    bias = candidates(graph.nodes[0].with_attrs(rounding="away"), graph)[0].constants[1]
    return DType.of(bias.array)


def test_32_bits_only_where_every_sum_fits() -> None:
    """-2^15 * 127 * 515 and a bias of the rest: one less does not fit."""
    weights = np.full((1, 515), 127, np.int8)
    rest = 515 * 127 * 32768 - (2**31 - 1)
    assert _total(_dense(weights, rest, 2**-16)) is DType.INT32
    assert _total(_dense(weights, rest - 1, 2**-16)) is DType.INT64


@pytest.mark.parametrize("bias", [0, 4321, 2**31 + 12345, -(2**33)])
def test_rounds_as_float64(bias: int) -> None:
    """Sums on both sides of ties, where the last bits of a float64 scale decide."""
    y_scale = float(np.float32(1.3))
    w_scale = float(np.float32(27000 / max(abs(bias), 2**22)))
    graph = _dense(np.asarray([[1, 127], [1, 127]], np.int8), bias, w_scale, y_scale)
    scale = w_scale / y_scale
    net = Model("fc.tflite", graph, "litert", "0" * 64).build(None).host("llvm")
    first = round((bias - 2**22) * scale)
    tried = 0
    steps = np.linspace(first, round((bias + 2**22) * scale), 40).astype(int)
    for wanted in steps[1:-1]:
        for sum_ in int(np.ceil((wanted + 0.5) / scale)) + np.arange(-1, 2):
            high = round((sum_ - bias) / 127)
            x = np.asarray([[sum_ - bias - 127 * high, high]], np.int64)
            if abs(high) > 32767:
                continue
            tried += 1
            real = sum_ * np.float64(scale)
            whole = np.trunc(real)
            whole += np.sign(real) * (abs(real - whole) >= 0.5)
            expected = [[np.clip(whole, -32768, 32767)] * 2]
            sample = {"x": x.astype(np.int16)}
            np.testing.assert_array_equal(recorded(net, sample)["y"], expected)
            made = interpret(_away(graph), sample)["y"]
            np.testing.assert_array_equal(made, expected)
    assert tried > 90


def _away(graph: Graph) -> Graph:
    (node,) = graph.nodes
    made = node.with_attrs(rounding="away")
    return replace(graph, nodes=(made,))


def test_scales_too_far_apart() -> None:
    graph = _dense(np.full((1, 24), 127, np.int8), 0, 100.0)
    with pytest.raises(BuildError, match="too far apart for 32 bits"):
        candidates(graph.nodes[0], graph)


def test_int16_with_a_zero_point() -> None:
    graph = _dense(np.full((1, 24), 127, np.int8), 0, 1.0)
    x = Tensor("x", (1, 24), DType.INT16, Quant((1.0,), (3,)))
    changed = replace(graph, tensors={**graph.tensors, "x": x})
    (problem,) = check_types(changed)
    assert problem.what == "'x' is int16 with a zero point"


def test_pairs_of_products_are_the_cheapest_on_a_core_that_has_them() -> None:
    """Also for sums of 64 bits."""
    for inputs in (24, 600):
        graph = _dense(np.full((4, inputs), 127, np.int8), 0, 2**-20)
        found = candidates(graph.nodes[0], graph, TARGETS["cortex-m4"])
        best = min(found, key=lambda c: c.cost).func
        assert best is not None and best.name.startswith("conv2d_s16_dsp")
        assert ("_runs" in best.name) == (inputs == 600)


# ---- fast kernels ----


def layer(number: int, rule: str, kind: str, zeros: tuple[int, int] = (0, 0)) -> Case:
    """Loud: all weights at one end, so that sums are as great as they can be; quiet:
    channels whose factor is far below the others'; great: scales that raise sums; far:
    biases of 41 bits; ties: scales that are powers of two, so that many sums are
    halfway."""
    op, x, w, stride, dilation = (*LAYERS, *ROWS, *PLANES)[number]
    chance = np.random.default_rng((16, number, len(rule)))
    axis = 2 if op == "depthwise_conv2d" else 0
    outs = w[axis]
    weights = chance.integers(-127, 128, w)
    bias = chance.integers(-300_000, 300_000, outs)
    if kind == LOUD:
        weights = np.where(weights < 0, -128, 127)
        weights = np.moveaxis(weights, axis, 0)
        weights[0] = 127
        weights = np.moveaxis(weights, 0, axis)
        bias[-1] += number % 2 << 33
    scales = chance.uniform(0.2, 1.0, outs) / np.sqrt(weights.size / outs) / 64
    if kind == QUIET:
        scales[1::3] *= 2.0**-14
        scales[2::3] = 2.0**-40
    if kind == GREAT:
        weights = np.clip(weights, -1, 1)
        scales[::2] = chance.uniform(0.3, 4.0, scales[::2].shape)
        bias //= 10_000
    if kind == FAR:
        scales = 2.0**-26 * chance.uniform(0.3, 1.0, outs)
        bias = (bias << 22) + 1
    if kind == TIES:
        scales = 2.0 ** -chance.integers(4, 9, outs)
        weights, bias = np.clip(weights, -3, 3), bias // 100
    inputs = (
        tensor(x, DType.INT16, 1.0, zeros[0]),
        (w, INT8, Quant(tuple(np.float32(scales).tolist()), (0,) * outs, axis)),
        ((outs,), DType.INT64, None),
    )
    attrs: dict[str, object] = {"clamp": ((None, None), (0.0, None))[number % 2]}
    if op != "dense":
        side = w[1] if op == "conv2d" else w[0]
        attrs |= {"strides": (stride, stride), "dilations": (dilation, dilation),
                  "pads": (side // 2 * dilation,) * 4}  # fmt: skip
    if op == "conv2d":
        attrs["groups"] = x[3] // w[3]
    fixed = {1: weights.astype(np.int8), 2: bias.astype(np.int64)}
    out = tensor((), DType.INT16, 1.0, zeros[1])
    made = case(op, inputs, out, fixed, rounding=rule, **attrs)
    return made if kind != LOUD else _at_ends(made)


def _at_ends(made: Case) -> Case:
    """Every input at one end, so that the sums of all taps are the greatest."""
    x = np.full_like(made.arrays["x0"], -32768)
    x.reshape(-1)[:: x.size // 3] = 32767
    return replace(made, arrays={**made.arrays, "x0": x})


def _cases() -> Iterator[Case]:
    for number, (op, *_) in enumerate((*LAYERS, *ROWS, *PLANES)):
        rules = ("wide", "away") if op == "dense" else ("wide",)
        for rule in rules:
            for kind in (LOUD, QUIET, GREAT, FAR, ""):
                yield layer(number, rule, kind)
        if number % 2 == 0:
            yield layer(number, "even", (LOUD, TIES, FAR, QUIET, "")[number % 5])
        if number % 2 or number % 4 == 0:
            kind = (LOUD, TIES, FAR, QUIET, "")[number // 2 % 5]
            yield layer(number, "even", kind, ZEROS[number % 5])
    for number in (0, 3, 11, 12):
        yield layer(number, "double", QUIET)


@cache
def _jobs() -> list[tuple[str, Job]]:
    return named_jobs(_cases(), (*CORES, "generic"), (*FAST, "_zero"))


def test_forms() -> None:
    """Each form of an end, and of sums, is among what the next tests run."""
    names = " ".join(name for name, _ in _jobs())
    forms = ("_high", "_shifted", "_parts", "_wide", "_exact", "_real", "_double",
             "_precise", "_exact_even", "_real_even")  # fmt: skip
    planes = ("_6and1_", "_3and1_", "_of1", "_of6", "_of7", "_four", "_again", "_held")
    beside = "_planes_3rows_left1_right1_odd", "evenzero", "oddzero"
    for form in (*forms, "_s64", *planes, *beside, "_s64_zero", "precise_zero"):
        assert form in names, form


@pytest.mark.parametrize("part", range(PARTS))
def test_by_llvm(part: int) -> None:
    must_be_equal(part_of(_jobs(), part, PARTS), run_llvm)


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some(_jobs()), lambda jobs: run_c(jobs, tmp_path))


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_no_layer_takes_the_plain_kernel(number: int, core: str) -> None:
    op, x, w, stride, _ = LAYERS[number]
    blocks = core in ("cortex-m0", "cortex-m3", "rv32imc")
    if blocks and op == "depthwise_conv2d" and w[2] > x[-1]:
        pytest.skip("of two outputs of a channel a copy takes more than it saves")
    if blocks and op == "conv2d" and w[0] == 1:
        pytest.skip("of one output a copy takes more than it saves")
    if x[1:3] == (12, 3) and stride == 2:
        pytest.skip("of rows of two outputs a copy takes more than it saves")
    one = layer(number, "wide", "")
    offers = candidates(one.node, one.graph, TARGETS[core])
    fastest = min(offers, key=lambda o: price(o, TARGETS[core]).instructions)
    assert fastest.func is not None
    assert any(word in fastest.func.name for word in FAST), fastest.func.name


def test_runs_are_as_long_as_is_proven() -> None:
    taps = 1040
    kernels = np.full((2, taps), 127, np.int8)
    assert turns_of_run(kernels[:, :515], 516, 4) == 129
    turns = turns_of_run(kernels, 1040, 4)
    assert turns * 4 * 127 <= MOST_WEIGHTS < taps * 127
    assert turns == 87  # of 260, in three
