"""Kernels of little code: random layers against the numpy meaning of their operators,
by LLVM and C on this machine; and that `--optimise size` shares them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.emit.tables.runs import OperandRuns
from pybuild.emit.tables.tables import Operand
from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.select.choose import Option, chosen
from pybuild.targets.target import TARGETS
from tests.graphs.networks import Network
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, INT32, Case, case, tensor
from tests.kernels.vector_layers import OPERATORS, layer
from tests.plan.test_live_ranges import must_be_there

CORE = TARGETS["cortex-m4"]


def narrow(outs: int, pixels: int) -> Case:
    """A layer of few output channels, some of which are computed twice; or of runs of
    odd length."""
    chance = np.random.default_rng((outs, pixels))
    weights = chance.integers(-127, 128, (outs, 1 + outs // 5, 1, 7)).astype(np.int8)
    bias = chance.integers(-3000, 3000, outs).astype(np.int32)
    inputs = (
        tensor((1, 2, pixels, 7), INT8, 0.05, 3),
        (weights.shape, INT8, Quant((0.01,) * outs, (0,) * outs, 0)),
        tensor((outs,), INT32),
    )
    return case("conv2d", inputs, tensor((), INT8, 0.3, -5), {1: weights, 2: bias},
                rounding="double")  # fmt: skip


def _jobs(seeds: range) -> list[Job]:
    layers = [layer(op, seed) for op in OPERATORS for seed in seeds]
    layers += [narrow(outs, pixels) for outs in (2, 3, 5) for pixels in (1, 2, 3)]
    jobs = [
        Job(offer, one.arrays, {"y": one.expected()})
        for one in layers
        for offer in candidates(one.node, one.graph, CORE, "size")
        if offer.func is not None and "_small" in offer.func.name
    ]
    assert len(jobs) > len(layers) // 2
    return jobs


def _check(jobs: list[Job], results: list[dict[str, np.ndarray]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_llvm_equals_numpy() -> None:
    jobs = _jobs(range(8))
    _check(jobs, run_llvm(jobs))


def test_two_numbers_in_an_argument_have_room() -> None:
    """40,000 pixels at once have not; as two rows they have."""
    one = narrow(2, 20_000)
    small = [c for c in candidates(one.node, one.graph, CORE, "size") if c.small]
    assert {c.bands for c in small} == {2}
    jobs = [Job(c, one.arrays, {"y": one.expected()}) for c in small]
    _check(jobs, run_llvm(jobs))


def test_c_equals_numpy(tmp_path: Path) -> None:
    jobs = _jobs(range(3))
    _check(jobs, run_c(jobs, tmp_path, "gcc"))


@pytest.mark.sweep
def test_many_more_layers() -> None:
    jobs = _jobs(range(1000, 1400))
    _check(jobs, run_llvm(jobs))


def test_one_kernel_serves_all_forms() -> None:
    """But for dilation, clamps, signs, whole images and windows of many columns."""
    for op in ("conv2d", "depthwise_conv2d"):
        offers = [
            offer
            for seed in range(12)
            for one in [layer(op, seed)]
            for offer in candidates(one.node, one.graph, CORE, "size")
            if offer.small and offer.func is not None and "_small" in offer.func.name
        ]
        by_name = {o.func.name: o.func for o in offers if o.func is not None}
        assert {o.func for o in offers} == set(by_name.values())
        assert len(by_name) <= 16 and len(by_name) < len(offers)


def test_only_size_has_them() -> None:
    one = layer("conv2d", 3)
    for optimise in ("balanced", "speed"):
        offers = candidates(one.node, one.graph, CORE, optimise)
        assert not any(offer.small for offer in offers)


@pytest.mark.parametrize("plan", ["rows", "whole"])
def test_layers_share_them(plan: str) -> None:
    net = Network("net", (1, 12, 12, 4), "int8", 0)
    for outputs in (13, 22, 31):
        net.conv(f"conv{outputs}", outputs, stride=1 + (outputs == 22))
    library = net.model().build(target="cortex-m4", optimise="size", plan=plan)
    used = {s.candidate.func.name for s in library.plan.steps if s.candidate.func}
    assert used == {"conv2d_small_clamped"}
    assert library.ram_curve()
    must_be_there(library.plan)


def test_a_kernel_takes_the_layers_of_one_other() -> None:
    """All of them would be too slow; those of the second it may have."""
    shared = [Option("small", 400, {"small": 100}) for _ in range(2)]
    slow = Option("small", 900, {"small": 100})
    layers = {
        "hot": (Option("a", 300, {"a": 200}), slow),
        "b": (Option("b", 300, {"b": 200}), shared[0]),
        "c": (Option("c", 300, {"c": 200}), shared[1]),
    }
    found = {layer: option.kernel for layer, option in chosen(layers, "size").items()}
    assert found == {"hot": "a", "b": "small", "c": "small"}


def test_tables_count_where_code_is_to_be_little() -> None:
    rows = Option("rows", 400, {"rows": 100}, tables=80)
    image = Option("image", 400, {"image": 110}, tables=20)
    for optimise, best in (("size", "image"), ("balanced", "rows")):
        found = chosen({"a": (rows, image), "b": (rows, image)}, optimise)
        assert {option.kernel for option in found.values()} == {best}


def test_steps_share_operands_whatever_lies_there() -> None:
    def operand(at: int, name: str) -> Operand:
        return Operand(at, 0, 1, name)

    runs = OperandRuns()
    first = [operand(0, "a"), operand(32, "b")]
    assert runs.add(first) == 0
    assert runs.add([operand(0, "c"), operand(64, "b")]) == 2
    assert runs.add([operand(0, "c"), operand(32, "b")]) == 0
    assert runs.add([operand(64, "d"), operand(96, "e")]) == 3
    assert [o.comment for o in runs.flat] == ["a, c", "b", "c", "b, d", "e"]
    assert [o.at for o in runs.flat] == [0, 32, 0, 64, 96]


@pytest.mark.parametrize("plan", ["rows", "whole"])
def test_blocks_lie_where_steps_are_handed_the_same(plan: str) -> None:
    """Each layer writes fewer bytes: any two places serve all of them in turn."""
    net = Network("net", (1, 96), "int8", 0)
    for outputs in (96, 80, 64, 56, 48, 40, 32, 24):
        net.dense(f"dense{outputs}", outputs)
    library = net.model().build(target="cortex-m4", optimise="size", plan=plan)
    assert library.plan.arena_bytes == 192
    # 14 and 15 where blocks stay as they were placed
    assert len(library.tables.operands) == {"whole": 7, "rows": 10}[plan]
    must_be_there(library.plan)
