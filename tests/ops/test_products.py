"""matmul of int8 by int8, both computed: each kernel against numpy, and the reference
against real numbers."""

from __future__ import annotations

from functools import partial
from itertools import product as pairs
from pathlib import Path

import numpy as np
import pytest

from pybuild.bounds.layers import bounds
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.kernels.epilogues.int16 import long_high
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import check_types, interpret
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c

Shape = tuple[int, ...]


def product(
    a: Shape, b: Shape, zeros: tuple[int, int] = (3, -7), rounding: str = "even",
    ratio: float = 0.0,
) -> Graph:  # fmt: skip
    """ratio  scale of a sum to that of y; else one that sums fill y with"""
    shape = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    scale = 0.02 * 0.03 / (ratio or 1 / (40 * a[-1] ** 0.5))
    rows = (("a", a, 0.02, zeros[0]), ("b", b, 0.03, zeros[1]), ("y", shape, scale, -9))
    tensors = {n: Tensor(n, s, DType.INT8, Quant((q,), (z,))) for n, s, q, z in rows}
    node = Node("matmul", "y", ("a", "b"), ("y",), {"rounding": rounding})
    return Graph("product", "product", (node,), tensors, ("a", "b"), ("y",))


# what kernels are of on a core, and products in a sum from which on it has them
FAMILIES = {"generic": ("", 0), "cortex-m4": ("dsp", 4), "cortex-m55": ("mve", 8)}


# by ONNX Runtime's rule, by LiteRT's, and by that where sums are shifted left
RULES = (("even", 0.0), ("double", 0.0), ("double", 3.7))


@pytest.mark.parametrize("target", FAMILIES)
@pytest.mark.parametrize("rule", RULES, ids=["even", "double", "left"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 5, 8), (2, 8, 3)), ((1, 7), (7, 1)), ((3, 17, 13), (13, 17)),
        ((4, 1, 6, 3), (2, 3, 5)), ((2, 1), (1, 2)), ((6, 4), (4, 4)),
        ((2, 5, 32), (2, 32, 3)), ((3, 31), (31, 2)),
    ],
)  # fmt: skip
def test_kernels_equal_numpy(
    a: Shape, b: Shape, rule: tuple[str, float], target: str
) -> None:
    """Odd numbers of rows, columns and products; of matrices, and one for all."""
    graph = product(a, b, rounding=rule[0], ratio=rule[1])
    chance = np.random.default_rng(a[-1])
    library = Model("product", graph, "onnx", "0" * 64).build(
        target=target, optimise="speed"
    )
    used = library.plan.steps[0].candidate.func
    assert used is not None
    family, least = FAMILIES[target]
    has = bool(family) and a[-1] >= least and a[-2] > 1
    assert [f for f in ("dsp", "mve") if f in used.name] == [family] * has
    net = library.host("llvm")
    for _ in range(3):
        given = {n: chance.integers(-128, 128, s).astype(np.int8)
                 for n, s in (("a", a), ("b", b))}  # fmt: skip
        net.run(**given)
        made = interpret(graph, given)["y"]
        np.testing.assert_array_equal(net.get_output("y"), made)
        real = [(v.astype(float) - graph.tensor(n).zero_point) * graph.tensor(n).scale
                for n, v in given.items()]  # fmt: skip
        steps = real[0] @ real[1] / graph.tensor("y").scale - 9
        # rounded twice: first to 64th parts of a step or finer
        most = 0.5001 if rule[0] == "even" else 0.5 + 1 / 128
        assert np.abs(np.clip(steps, -128, 127) - made).max() < most


def test_c_reads_nothing_outside(tmp_path: Path) -> None:
    """Each core's kernel as C with sanitizers; each tensor is an allocation."""
    jobs, chance = [], np.random.default_rng(5)
    for depth, rule in pairs((4, 8, 17, 32), RULES):
        graph = product((2, 2, depth), (2, depth, 6), (3, -7), *rule)
        given = {n: chance.integers(-128, 128, graph.tensor(n).shape).astype(np.int8)
                 for n in graph.inputs}  # fmt: skip
        wanted = {"y": interpret(graph, given)["y"]}
        for target in FAMILIES:
            offers = candidates(graph.nodes[0], graph, TARGETS[target])
            jobs.append(Job(offers[-1], given, wanted))
    names = {job.candidate.func.name for job in jobs if job.candidate.func}
    words = "s8", "s8_dsp", "s8_dsp_rest"
    ends = "", "_double", "_left_double"
    wanted = {f"matmul_{w}{end}_2x2_sss" for w in words for end in ends}
    for copied in ("", "_copied"):
        wanted.add(f"matmul_s8_mve{copied}_2x2_sss")
        for fours, end in (("", "_double"), ("_lifted_up", "_left_double")):
            name = f"matmul_s8_mve_fours{fours}{copied}{end}_2x4_last_sss"
            wanted.add(name)
    assert names == wanted
    for job, result in zip(jobs, run_c(jobs, tmp_path, "gcc"), strict=True):
        np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_greatest_sums_and_what_is_refused() -> None:
    graph = product((1, 4096), (4096, 1), (-128, -128))
    given = {n: np.full(graph.tensor(n).shape, 127, np.int8) for n in "ab"}
    for target in FAMILIES:
        library = Model("product", graph, "onnx", "0" * 64).build(target=target)
        net = library.host("llvm")
        net.run(**given)
        assert net.get_output("y").tolist() == interpret(graph, given)["y"].tolist()
    (found,) = check_types(product((1, 40_000), (40_000, 1)))
    assert "sums 40000 products of int8" in str(found)
    tensors = dict(graph.tensors)
    tensors["b"] = Tensor("b", (4096, 1), DType.INT8)
    bare = Graph("g", "g", graph.nodes, tensors, ("a", "b"), ("y",))
    with pytest.raises(BuildError, match="'b' has no scale"):
        candidates(bare.nodes[0], bare, TARGETS["generic"])


def wide_product(a: Shape, b: Shape, scale: float = 0.0) -> Graph:
    shape = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    scale = scale or 2e-4 * 3e-4 * 32768 * 0.6 * a[-1] ** 0.5
    rows = (("a", a, 2e-4), ("b", b, 3e-4), ("y", shape, scale))
    tensors = {n: Tensor(n, s, DType.INT16, Quant((q,), (0,))) for n, s, q in rows}
    node = Node("matmul", "y", ("a", "b"), ("y",), {"rounding": "wide"})
    return Graph("product", "product", (node,), tensors, ("a", "b"), ("y",))


WIDE_FAMILIES = {
    "generic": "s16", "cortex-m0": "block", "cortex-m3": "block",
    "rv32imc": "block", "cortex-m4": "dsp", "cortex-m55": "mve",
}  # fmt: skip


def test_products_of_int16_equal_numpy_and_read_nothing_outside(tmp_path: Path) -> None:
    """Sums of 64 bits; the multiplier has 15 bits, so a step is lost in 32,768."""
    jobs, chance = [], np.random.default_rng(6)
    shapes: list[tuple[Shape, Shape]] = [
        ((2, 5, 8), (2, 8, 3)), ((1, 7), (7, 1)), ((3, 17, 13), (13, 17)),
        ((4, 1, 6, 3), (2, 3, 5)), ((2, 1), (1, 2)), ((1, 4096), (4096, 2)),
    ]  # fmt: skip
    for a, b in shapes:
        # of the last a ratio for which the high half of a product is too short
        graph = wide_product(a, b, 2.0**-21 * (a[-1] == 13))
        given = {n: chance.integers(-32768, 32768, s).astype(np.int16)
                 for n, s in (("a", a), ("b", b))}  # fmt: skip
        if a[-1] > 1000:  # all products at their greatest: 2^42
            given = {n: np.full_like(v, -32768) for n, v in given.items()}
        made = interpret(graph, given)["y"]
        real = [v.astype(float) * graph.tensor(n).scale for n, v in given.items()]
        steps = np.clip(real[0] @ real[1] / graph.tensor("y").scale, -32768, 32767)
        assert np.abs(steps - made).max() < 1.6
        for target, family in WIDE_FAMILIES.items():
            found = candidates(graph.nodes[0], graph, TARGETS[target])[-1]
            assert found.func is not None
            assert a[-1] < 4 or family in found.func.name
            assert ("_wide" in found.func.name) == (a[-1] == 13)
            jobs.append(Job(found, given, {"y": made}))
            library = Model("product", graph, "onnx", "0" * 64).build(target=target)
            net = library.host("llvm")
            np.testing.assert_array_equal(net.run(**given)["y"], made)
            net.close()
    for job, result in zip(jobs, run_c(jobs, tmp_path, "gcc"), strict=True):
        np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_the_end_of_a_long_sum_is_the_rule() -> None:
    """By the high half of a product, whatever the sum; else it is not taken."""
    taken = 0
    for depth in (1, 7, 4096, 1 << 16):
        for shift in (8, 16, 17, 20, 31, 32, 33, 34, 40, 46):
            for multiplier in (1 << 14, 23_171, (1 << 15) - 1):
                most = depth << 30
                found = long_high(multiplier, shift, most)
                if found is None:
                    continue
                taken += 1
                factor, down = found
                assert 0 < factor < 1 << 31 and down >= 1
                near = (most * multiplier) >> shift
                sums = [most, -most, 0, 1, -1, near << 15, most // 3, -most // 7]
                for total in (s + d for s in sums for d in (-1, 0, 1)):
                    if abs(total) > most:
                        continue
                    word = (total * factor) >> 32
                    half = 1 << (down - 1)
                    assert word >= -(1 << 31) and word + half < 1 << 31
                    rule = (total * multiplier + (1 << (shift - 1))) >> shift
                    assert (word + half) >> down == rule
    assert taken > 60


@pytest.mark.parametrize("target", WIDE_FAMILIES)
def test_no_kernel_leaves_its_memory(target: str) -> None:
    """By proof, of every form: rests of rows, of columns and of sums."""
    doubled = partial(product, rounding="double")
    for made in (product, doubled, wide_product):
        for a, b in (((2, 5, 8), (2, 8, 7)), ((3, 17, 13), (13, 17)), ((1, 7), (7, 1)),
                     ((3, 4, 17), (3, 17, 8)), ((4, 1, 6, 3), (2, 3, 5))):  # fmt: skip
            graph = made(a, b)
            model = Model("product", graph, "onnx", "0" * 64)
            plan = model.build(target=target, optimise="speed").plan
            assert all(layer.is_proven for layer in bounds(plan)), bounds(plan)


def test_products_of_int16_that_are_refused() -> None:
    """Where a scaled sum could leave 32 bits, and sums of too many."""
    for graph, what in (
        (wide_product((1, 8), (8, 1), 1e-9), "a ratio of scales"),
        (wide_product((1, 70_000), (70_000, 1)), "sums 70000 products of int16"),
    ):
        (found,) = check_types(graph)
        assert what in str(found)
