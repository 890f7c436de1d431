"""Each kernel alone against the numpy meaning of its operator, both printers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.loop import Intrin, Piece
from pybuild.ir.loop_verify import intrins
from pybuild.kernels.moves import shape
from pybuild.kernels.operators import eltwise
from pybuild.kernels.operators import mean as reduce
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_candidate, run_llvm
from tests.kernels.kernel_cases import (
    FLOAT32,
    INT8,
    POOLS,
    ROUNDINGS,
    Case,
    case,
    float_cases,
    int8_cases,
    tensor,
)
from tests.ops.cases import cases

# float32: of the largest value that the operator made, and of each value
RANGE, EACH = 1e-6, 3e-6


@cache
def _exact() -> tuple[Case, ...]:
    return tuple(int8_cases())


@cache
def _floats() -> tuple[Case, ...]:
    return tuple(float_cases())


def _jobs(
    cases: Sequence[Case], optimise: str, core: str = "generic", word: str = ""
) -> list[tuple[Case, Job]]:
    """Every candidate of every case, also in place of each input it may take; of
    those with a word in their name."""
    jobs = []
    for one in cases:
        for offer in candidates(one.node, one.graph, TARGETS[core], optimise):
            if offer.func is None or word not in offer.func.name:
                continue
            if offer.finish is not None:  # a step of two: test_rows
                continue
            made = {"y": one.expected()}
            jobs.append((one, Job(offer, one.arrays, made)))
            computed = [n for n in one.node.inputs if n not in one.graph.constants]
            for position in offer.in_place:
                if one.node.inputs[position] in computed:
                    taken = computed.index(one.node.inputs[position])
                    jobs.append((one, Job(offer, one.arrays, made, taken)))
    return jobs


def _same(case: Case, got: Array) -> bool:
    want = case.expected()
    if want.dtype != np.float32:
        return np.array_equal(got, want)
    room = RANGE * float(np.abs(want).max(initial=0)) + EACH * np.abs(want)
    return bool((np.abs(got - want) <= room).all())


def _check(
    jobs: Sequence[tuple[Case, Job]], results: Sequence[dict[str, Array]]
) -> None:
    wrong = [
        f"{job.candidate.func.name}: {case.graph.dump()}"
        for (case, job), result in zip(jobs, results, strict=True)
        if not _same(case, result["y"])
    ]
    assert not wrong, f"{len(wrong)} of {len(jobs)} differ, the first:\n{wrong[0]}"


@cache
def _all_jobs(kind: str, optimise: str) -> list[tuple[Case, Job]]:
    jobs = _jobs(_exact() if kind == "int8" else _floats(), optimise)
    return jobs[::7] if optimise == "speed" else jobs


@cache
def _by_llvm(kind: str, optimise: str) -> list[dict[str, Array]]:
    return run_llvm([job for _, job in _all_jobs(kind, optimise)])


@pytest.mark.parametrize("kind", ["int8", "float"])
@pytest.mark.parametrize("optimise", ["balanced", "speed"])
def test_llvm_equals_numpy(kind: str, optimise: str) -> None:
    _check(_all_jobs(kind, optimise), _by_llvm(kind, optimise))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("kind", ["int8", "float"])
def test_c_equals_numpy(kind: str, compiler: str, tmp_path: Path) -> None:
    jobs = _all_jobs(kind, "balanced")
    results = run_c([job for _, job in jobs], tmp_path, compiler)
    _check(jobs, results)
    if kind == "float":
        twins = _by_llvm(kind, "balanced")
        for (_, job), c, llvm in zip(jobs, results, twins, strict=True):
            assert c["y"].tobytes() == llvm["y"].tobytes(), job.candidate.func.name


@pytest.mark.parametrize("op", ["logistic", "tanh"])
def test_functions_are_within_three_units_in_the_last_place(op: str) -> None:
    near, far = np.linspace(-2, 2, 100_001), np.linspace(-84, 84, 100_001)
    small = np.logspace(-30, -1, 1000)
    x = np.concatenate([near, far, small, -small]).astype(np.float32)
    real = x.astype(np.float64)
    exact = np.tanh(real) if op == "tanh" else 1 / (1 + np.exp(-real))
    unit = np.spacing(np.abs(exact).astype(np.float32))
    assert (np.abs(_function(op, x) - exact) / unit).max() < 3


@pytest.mark.parametrize("op", ["logistic", "tanh"])
def test_functions_never_make_infinity_and_keep_nan(op: str) -> None:
    ends = [np.inf, 1e38, 89.0, 0.0, 1e-45, np.nan]
    x = np.asarray([*ends, *(-end for end in ends)], np.float32)
    y = _function(op, x)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    assert (np.abs(y[~np.isnan(x)]) <= 1).all()


def _function(op: str, x: Array) -> Array:
    made = case(op, (tensor(x.shape, FLOAT32),))
    offer = candidates(made.node, made.graph)[0]
    return run_candidate(offer, {"x0": x}, {"y": x})["y"]


def test_axes_join_into_the_fewest_loops() -> None:
    axis = shape.Axis
    plain = shape.join([axis(4, 15, 15), axis(5, 3, 3), axis(3, 1, 1)])
    assert plain == (axis(60, 1, 1),)
    cut = shape.join([axis(4, 15, 6), axis(1, 9, 9), axis(6, 1, 1)])
    assert cut == (axis(4, 15, 6), axis(6, 1, 1))
    keys = [a.key for a in eltwise.join((2, 3, 4, 5), (2, 3, 1, 1), (2, 3, 4, 5))]
    assert keys == ["e", "b"]
    kinds = [(a.size, a.reduced) for a in reduce.join((1, 4, 5, 6), (1, 2))]
    assert kinds == [(20, True), (6, False)]


def test_tall_tensors_are_taken_whole() -> None:
    for height, bands in ((65_535, 65_535), (65_536, 1)):
        tall = tensor((1, height, 4, 4))
        made = case("clip", (tall,), clamp=(0.0, None), rounding="double")
        assert candidates(made.node, made.graph)[0].bands == bands


def test_scales_too_far_apart_are_refused() -> None:
    wild = (tensor((3,), scale=1e6), tensor((3,), scale=1e6))
    made = case("mul", wild, tensor((3,), scale=1e-6), rounding="double")
    with pytest.raises(BuildError, match="scales of inputs and output are too far"):
        candidates(made.node, made.graph)


def test_replaceable_weights_have_kernels_that_know_no_value() -> None:
    weights = tensor((8, 1, 1, 8), scale=0.01)
    ones = np.ones((8, 1, 1, 8), np.int8)
    attrs = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)}
    made = case("conv2d", (tensor((1, 4, 4, 8)), weights), tensor((), scale=0.2),
                {1: ones}, **attrs, rounding="double")  # fmt: skip
    names = [
        [c.func.name for c in candidates(made.node, graph, TARGETS["cortex-m4"])
         if c.func is not None]
        for graph in (made.graph, replace(made.graph, parameters={"x1": "w"}))
    ]  # fmt: skip
    assert [any("dsp" in name for name in found) for found in names] == [True, False]


def test_less_scratch_gives_the_same_bytes() -> None:
    """A dense layer, a strided pointwise one and one of a large patch, on pairs."""
    attrs = {"dilations": (1, 1), "rounding": "double"}

    def weights(*shape: int) -> Array:
        return np.random.default_rng(1).integers(-127, 128, shape, np.int8)

    cases_of = [
        case("dense", (tensor((1, 24)), tensor((19, 24), scale=0.01)),
             tensor((), scale=0.2), {1: weights(19, 24)}, rounding="double"),
        case("conv2d", (tensor((1, 3, 7, 16)), tensor((6, 1, 1, 16), scale=0.01)),
             tensor((), scale=0.2), {1: weights(6, 1, 1, 16)},
             strides=(2, 2), pads=(0, 0, 0, 0), **attrs),
        case("conv2d", (tensor((1, 3, 5, 64)), tensor((5, 3, 3, 64), scale=0.002)),
             tensor((), scale=0.2), {1: weights(5, 3, 3, 64) // 12},
             strides=(1, 1), pads=(1, 1, 1, 1), **attrs),
    ]  # fmt: skip
    jobs = []
    for one in cases_of:
        offers = candidates(one.node, one.graph, TARGETS["cortex-m4"])
        pairs = [c for c in offers if c.func and "dsp" in c.func.name]
        assert pairs[0].scratch > min(c.scratch for c in pairs)
        jobs += [(one, Job(c, one.arrays, {"y": one.expected()})) for c in pairs]
    _check(jobs, run_llvm([job for _, job in jobs]))


def test_depthwise_rows_give_the_same_bytes() -> None:
    """On pairs, by kernels that take one row of the output at a time."""
    same, stride2 = {"strides": (1, 1)}, {"strides": (2, 2)}
    layers = [
        ((1, 4, 5, 8), (3, 3, 8), same, (1, 1, 1, 1)),
        ((1, 3, 3, 4), (3, 3, 4), same, (1, 1, 1, 1)),
        ((1, 5, 12, 6), (3, 3, 12), stride2, (0, 0, 1, 1)),
        ((1, 6, 7, 5), (5, 5, 5), same, (2, 2, 2, 2)),
        ((1, 2, 9, 4), (1, 4, 4), same, (0, 3, 0, 3)),
        ((1, 4, 6, 4), (2, 2, 4), same, (0, 0, 0, 0)),
    ]
    jobs = []
    for x, w, strides, pads in layers:
        values = np.random.default_rng(2).integers(-127, 128, w, np.int8)
        one = case("depthwise_conv2d", (tensor(x), tensor(w, scale=0.01)),
                   tensor((), scale=0.2), {1: values}, **strides, pads=pads,
                   dilations=(1, 1), rounding="double")  # fmt: skip
        offers = candidates(one.node, one.graph, TARGETS["cortex-m4"])
        rows = [c for c in offers if c.func and "dsp" in c.func.name and c.bands > 1]
        assert len(rows) == 1
        jobs += [(one, Job(c, one.arrays, {"y": one.expected()})) for c in rows]
    _check(jobs, run_llvm([job for _, job in jobs]))


def test_averages_in_sums_of_16_bits() -> None:
    """As many cells of the lowest value as fit; not one more."""
    core, jobs = TARGETS["cortex-m4"], []
    for sides, kernel, strides, fits in (
        ((1, 15, 17, 8), (15, 17), (1, 1), True),
        ((1, 16, 16, 8), (16, 16), (1, 1), False),
        ((2, 6, 9, 12), (3, 2), (2, 3), True),
        ((1, 6, 9, 10), (3, 2), (2, 3), False),
    ):
        for rule in ROUNDINGS:
            source = tensor(sides, zero=11)
            made = tensor((), scale=0.06, zero=-3) if rule != "away" else source
            one = case("avg_pool2d", (source,), made, kernel=kernel, strides=strides,
                       pads=(0, 0, 0, 0), rounding=rule, clamp=(None, 3.0))  # fmt: skip
            if kernel == (15, 17):
                one = replace(one, arrays={"x0": np.full(sides, -128, np.int8)})
            found = candidates(one.node, one.graph, core)
            pairs = [c for c in found if c.func and "pool_dsp" in c.func.name]
            assert len(pairs) == fits
            jobs += [(one, Job(c, one.arrays, {"y": one.expected()})) for c in pairs]
    _check(jobs, run_llvm([job for _, job in jobs]))


@pytest.mark.parametrize(
    ("core", "word"), [("cortex-m4", "_dsp"), ("cortex-m55", "_mve")]
)
def test_averages_of_fewer_cells_at_the_edges(
    core: str, word: str, tmp_path: Path
) -> None:
    """Four channels at a time or sixteen, the last ones reaching back; as many cells as
    fit; with one scale by a product for each number of cells."""
    jobs, divided = [], 0
    for index, (sides, kernel, pads) in enumerate((
        ((1, 6, 9, 12), (3, 3), (1, 1, 1, 1)), ((2, 5, 7, 6), (2, 3), (1, 0, 0, 2)),
        ((1, 5, 8, 4), (5, 4), (0, 2, 0, 1)), ((1, 16, 18, 5), (15, 17), (1, 1, 1, 1)),
        ((1, 4, 6, 19), (1, 3), (0, 1, 0, 1)), ((1, 6, 6, 32), (3, 3), (1, 1, 1, 1)),
    )):  # fmt: skip
        source = tensor(sides, zero=11)
        clamp = (None, None if index > 3 else 3.0)
        for rule in ("double", ROUNDINGS[index % 4]):
            made = tensor((), scale=0.06, zero=-3) if rule != "double" else source
            one = case("avg_pool2d", (source,), made, kernel=kernel, strides=(1, 2),
                       pads=pads, rounding=rule, clamp=clamp)  # fmt: skip
            if kernel == (15, 17):
                one = replace(one, arrays={"x0": np.full(sides, -128, np.int8)})
            found = _jobs([one], "balanced", core, word)
            assert len(found) == 1, (sides, rule)
            func = found[0][1].candidate.func
            assert func is not None
            by_product = "_divide" in func.name and index != 3  # of up to 134 cells
            assert ("_shift" in func.name) == by_product
            divided += by_product
            jobs += found
    assert divided >= 5
    _check(jobs, run_llvm([job for _, job in jobs]))
    _check(jobs, run_c([job for _, job in jobs], tmp_path))


def test_means_in_sums_of_16_bits() -> None:
    """As many values as fit; not one more. Of images, and of columns of each."""
    jobs = []
    for sides, axes, fits in (
        ((1, 15, 17, 8), (1, 2), True), ((1, 16, 16, 8), (1, 2), False),
        ((2, 3, 5, 12), (1, 2), True), ((1, 3, 5, 4), (2,), True),
        ((1, 6, 9, 10), (1, 2), False),
    ):  # fmt: skip
        for rule in ROUNDINGS:
            one = case("mean", (tensor(sides, INT8, 0.05, -20),),
                       tensor((), INT8, 0.04, 5), axes=axes, keepdims=True,
                       rounding=rule)  # fmt: skip
            if sides[1] == 15:
                one = replace(one, arrays={"x0": np.full(sides, -128, np.int8)})
            found = _jobs([one], "balanced", "cortex-m4", "_dsp")
            assert len(found) == fits, (sides, rule)
            jobs += found
    _check(jobs, run_llvm([job for _, job in jobs]))


@pytest.mark.parametrize(
    "step", [9, pytest.param(1, marks=pytest.mark.sweep)], ids=["some", "all"]
)
def test_sums_and_products_four_at_a_time(step: int, tmp_path: Path) -> None:
    """In every form, in place, and of all pairs of values."""
    jobs = _jobs([c for c in _exact() if c.node.op in ("add", "sub", "mul")],
                 "balanced", "cortex-m4", "_dsp")  # fmt: skip
    names = {job.candidate.func.name for _, job in jobs if job.candidate.func}
    for word in ("add_s8_", "sub_s8_", "mul_s8_e_", "signed", "_tail", "clamped",
                 "held", "even"):  # fmt: skip
        assert any(word in name for name in names), word
    jobs = jobs[::step]
    x = np.arange(-128, 128, dtype=np.int8)
    for op, rule, (a, b) in (
        ("mul", "double", (-128, 3)), ("mul", "single", (7, 127)),
        ("mul", "double", (-128, -128)), ("add", "double", (-128, 5)),
        ("sub", "single", (9, 20)), ("mul", "even", (3, -5)),
    ):  # fmt: skip
        sides = (tensor((65536,), scale=0.0213, zero=a),
                 tensor((65536,), scale=0.0471, zero=b))  # fmt: skip
        low = None if op == "mul" else 0.0
        made = case(op, sides, tensor((), scale=0.0633, zero=-99),
                    rounding=rule, clamp=(low, None))  # fmt: skip
        every = {"x0": np.repeat(x, 256), "x1": np.tile(x, 256)}
        found = _jobs([replace(made, arrays=every)], "balanced", "cortex-m4", "_dsp")
        assert found, (op, rule)
        jobs += found
    _check(jobs, run_llvm([job for _, job in jobs]))
    if step == 1:
        _check(jobs, run_c([job for _, job in jobs], tmp_path))


def test_moves_and_maxima_of_many_bytes_at_a_time(tmp_path: Path) -> None:
    """Rows of blocks, and of blocks and a rest; sanitised."""
    jobs = []
    pools = [
        case("max_pool2d", (tensor(x),), kernel=kernel, strides=strides, pads=pads)
        for x, kernel, strides, pads in POOLS
    ]
    low = np.int8(-128)
    pools += [replace(c, arrays={"x0": c.arrays["x0"] | low}) for c in pools]
    moves = [c for c in _exact() if c.node.op in ("copy", "slice", "concat", "pad")]
    moves.append(case("transpose", (tensor((3, 4, 40)),), perm=(1, 0, 2)))
    # a Cortex-M3's are those of all cores that load words at any address
    for core, word in (("cortex-m3", "_words"), ("cortex-m55", "_vectors")):
        jobs += _jobs(moves, "shared", core, word)
    jobs += _jobs(pools, "shared", "cortex-m4", "_pool_dsp")
    names = " ".join(job.candidate.func.name for _, job in jobs if job.candidate.func)
    for word in ("words16", "words_row", "16_rest", "pad_s8", "pad_border",
                 "vectors_row", "concat2", "3x3_by4", "by4_padded",
                 "large_by4"):  # fmt: skip
        assert word in names, word
    _check(jobs, run_llvm([job for _, job in jobs]))
    _check(jobs, run_c([job for _, job in jobs], tmp_path))


def test_pieces_of_one_name_are_one_function() -> None:
    known: dict[str, Intrin] = {}
    pieces = 0
    for one in (*cases("conv"), *cases("dense")):
        graph = one.graph("litert")
        # of all that "balanced" has, too
        for offer in candidates(graph.nodes[0], graph, TARGETS["cortex-m4"], "speed"):
            for function in intrins(offer.func) if offer.func else ():
                pieces += isinstance(function, Piece)
                assert known.setdefault(function.name, function) == function
    assert pieces > 40
