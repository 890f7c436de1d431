"""What several cores get: proofs that refuse, options that do not go together, builds
that stay with one core."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import pybuild
from pybuild.cores.core_plan import sliced_candidate
from pybuild.cores.disjoint import are_disjoint
from pybuild.errors import BuildError
from pybuild.html.comparison import compared
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.boards.devices import DIGITS
from tests.cores.branches import models
from tests.cores.nets import one_dense, small
from tests.graphs.networks import Network
from tests.kernels.kernel_cases import INT8, computed_product


def test_slices_that_meet_are_not_proven() -> None:
    library = small().build(target="cortex-m33", cores=2)
    candidates = [s.candidate for s in library.plan.steps if s.candidate.slices]
    assert len(candidates) > 3
    for one in candidates:
        assert are_disjoint(one, one.slices)[0]
        assert not are_disjoint(one, (one.args, one.args))[0]


def test_a_pointer_moved_on_behind_a_loop_over_one_image() -> None:
    """All steps of a U-Net, its bilinear resize among them."""
    net = models(["u_net_bilinear"])["u_net_bilinear"]
    library = net.build(target="cortex-m33", cores=2)
    steps = [s for s in library.plan.steps if s.candidate.func is not None]
    assert all(s.candidate.slices for s in steps)
    assert "resize_bilinear" in {s.node.op for s in steps}


def test_another_kernel_where_the_fastest_has_no_slices() -> None:
    """Of 4 channels the fastest one computes all at once."""
    net = Network("depth", (1, 16, 16, 4), "int8", 1)
    net.depthwise("depth")
    model = net.model()
    one, two = (model.build(target="cortex-m33", cores=n) for n in (1, 2))
    fastest, other = (b.plan.steps[0].candidate for b in (one, two))
    assert not sliced_candidate(fastest, TARGETS["cortex-m33"], 2).slices
    assert other.slices
    assert two.spread is not None and two.spread.ratio < 0.7


def test_scratch_whose_end_is_known_from_sums_of_several_numbers() -> None:
    target = TARGETS["cortex-m33"]
    product = computed_product(INT8, (17, 17, 8), 3)
    offers = candidates(product.node, product.graph, target, "balanced")
    made = [sliced_candidate(one, target, 2) for one in offers]
    names = {one.func.name for one in made if one.slices and one.func}
    assert any("dsp_rest" in name for name in names)


def test_scratch_of_another_slice_is_not_proven() -> None:
    library = small().build(target="cortex-m33", cores=2)
    made = [s.candidate for s in library.plan.steps if s.candidate.slices]
    one = next(c for c in made if c.scratch)
    first, second = one.slices
    assert not are_disjoint(one, (first, (*second[:-1], first[-1])))[0]
    less = replace(one, scratch=one.scratch // 4)
    near = (first, (*second[:-1], less.scratch // 2))
    assert not are_disjoint(less, near)[0]


def test_slices_cover_what_one_core_computes() -> None:
    library = small().build(target="cortex-m0", cores=3)
    for step in library.plan.steps:
        ends = [args[-3:-1] for args in step.candidate.slices]
        if ends:
            whole = step.candidate.args[-3:-1]
            assert (ends[0][0], ends[-1][1]) == whole
            assert all(a[1] == b[0] for a, b in pairwise(ends))


def test_a_build_without_slices_is_that_of_one_core() -> None:
    model = one_dense()
    library = model.build(cores=2)
    assert library.tables.cores == 1 and "_run_cores" not in library.sources()["tiny.h"]
    assert library.sources()["tiny.c"] == model.build().sources()["tiny.c"]
    assert library.report.cores is not None and library.report.cores.sliced == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [({"cores": 5}, "5 are too many"),
     ({"cores": 2, "push": "image"}, "--push"), ({"cores": 0}, "not a number from 1")],
)  # fmt: skip
def test_what_does_not_go_together(options: dict[str, object], told: str) -> None:
    with pytest.raises(BuildError, match=told):
        small().build(**options)  # type: ignore[arg-type]


def test_a_comparison_has_what_both_cores_take_from_begin_to_end() -> None:
    one, two = (small().build(cores=n).report.to_json() for n in (1, 2))
    figures = {row.what: row for row in compared(one, two).figures}
    row, use = figures["from begin to end, as estimated"], two["cores"]
    assert (row.one, row.other) == (use["alone"], use["together"])
    assert figures["instructions, as estimated"].one == row.one
    assert "from begin to end, as estimated" not in {
        row.what for row in compared(one, one).figures
    }


@pytest.mark.parametrize(
    ("target", "limit", "most"),
    [("cortex-m33", 1500, 1500), ("cortex-m0", None, 1.1 * 696)],
)
def test_kernels_with_less_scratch_where_ram_is_short(
    target: str, limit: int | None, most: float
) -> None:
    """The fastest slices take 1,824 and 812 bytes: scratch is there once a core."""
    model = pybuild.load(DIGITS)
    library = model.build(target=target, cores=2, ram_limit=limit)
    assert library.plan.arena_bytes <= most
    assert library.spread is not None and library.spread.ratio < 0.7
    for step in library.plan.steps:
        if step.candidate.slices:
            assert are_disjoint(step.candidate, step.candidate.slices)[0]
