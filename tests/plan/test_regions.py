"""Regions of memory: what moves most bytes lies in the fastest, none holds more than it
may, and the bits are those of one arena."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.errors import BuildError, LimitError
from pybuild.kernels.base.candidate import RowAccess
from pybuild.options.regions import RegionSpec, read_region, read_regions
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.regions.assignment import Spread, spread
from pybuild.plan.regions.regions import Wishes, place_regions
from pybuild.plan.regions.traffic import rows_met, traffic
from pybuild.verify.samples import samples
from tests.conftest import model_path
from tests.emit.test_generated_c import sanitized
from tests.graphs.networks import classifier
from tests.installed.test_several_models import models as parts
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
THREE = ("dtcm=1K:fast", "sram=2K", "psram=1M:slow")
SPEEDS = ("fast", "plain", "slow")


# ---- who gets what ------------------------------------------------------------------


def cost(made: Spread, specs: list[RegionSpec], moved: Counter[str]) -> list[int]:
    """Bytes moved in slow, in plain and in fast memory."""
    sums = dict.fromkeys(SPEEDS, 0)
    for spec, members in zip(specs, made.members, strict=True):
        sums[spec.speed] += sum(moved[b.name] for b in members)
    return [sums[speed] for speed in reversed(SPEEDS)]


def least(
    blocks: list[Block], specs: list[RegionSpec], moved: Counter[str]
) -> list[int]:
    """The best cost of all ways; a way fits if no moment needs more than a region."""
    best = [1 << 60, 0, 0]
    ends = range(max(b.last for b in blocks) + 1)
    for way in itertools.product(range(len(specs)), repeat=len(blocks)):
        sums = dict.fromkeys(SPEEDS, 0)
        for block, at in zip(blocks, way, strict=True):
            sums[specs[at].speed] += moved[block.name]
        found = [sums[speed] for speed in reversed(SPEEDS)]
        if found < best and all(
            sum(
                b.bytes
                for b, at in zip(blocks, way, strict=True)
                if at == index and b.first <= step <= b.last
            )
            <= spec.bytes
            for step in ends
            for index, spec in enumerate(specs)
        ):
            best = found
    return best


def case(seed: int) -> tuple[list[Block], list[RegionSpec], Counter[str]]:
    chance = random.Random(seed)
    blocks = []
    for index in range(chance.randint(2, 6)):
        first = chance.randint(0, 5)
        size = 4 * chance.randint(1, 30)
        blocks.append(Block(f"b{index}", size, first, first + chance.randint(0, 3)))
    moved = Counter({b.name: b.bytes * chance.randint(1, 9) for b in blocks})
    specs = [
        RegionSpec("a", 4 * chance.randint(10, 50), "fast"),
        RegionSpec("b", 4 * chance.randint(10, 60)),
        RegionSpec("c", 4000, "slow"),
    ]
    return blocks, specs, moved


def test_spread_is_near_the_best_of_all_ways() -> None:
    """None over what a region may hold, no two blocks in one place at a time."""
    best = 0
    for seed in range(40):
        blocks, specs, moved = case(seed)
        made = spread(blocks, specs, moved, frozenset(), 4)
        assert not made.unplaced
        for spec, members, layout in zip(
            specs, made.members, made.layouts, strict=True
        ):
            assert layout.bytes <= spec.bytes
            placed = list(zip(members, layout.offsets, strict=True))
            for (one, at), (two, other) in itertools.combinations(placed, 2):
                if one.first <= two.last and two.first <= one.last:
                    assert at + one.bytes <= other or other + two.bytes <= at
        assert sum(map(len, made.members)) == len(blocks)
        best += cost(made, specs, moved) == least(blocks, specs, moved)
    assert best >= 36


def test_most_moved_for_a_byte_goes_to_the_fast_region() -> None:
    blocks = [
        Block("large", 400, 0, 9),
        Block("hot", 100, 0, 9),
        Block("cold", 100, 0, 9),
    ]
    moved = Counter({"large": 800, "hot": 700, "cold": 50})
    specs = [RegionSpec("far", 1000, "slow"), RegionSpec("near", 400, "fast")]
    made = spread(blocks, specs, moved, frozenset(), 4)
    near = {b.name for b in made.members[1]}
    assert near == {"large"}  # 50 bytes less for the slow one than the other way
    made = spread(blocks[1:], [specs[0], RegionSpec("near", 100, "fast")], moved,
                  frozenset(), 4)  # fmt: skip
    assert {b.name for b in made.members[1]} == {"hot"}


def test_rows_count_each_time_a_kernel_is_handed_them() -> None:
    """Rows of padding do not."""
    assert rows_met(RowAccess("x", 5, 8, 3, 2, 1), 3) == 2 + 3 + 2
    assert rows_met(RowAccess("x", 4, 8, 4, 0), 6) == 24
    made = pybuild.load(DIGITS).build().plan
    steps = [(step.node, step.candidate) for step in made.steps]
    moved = traffic(steps, [""] * len(steps), lambda name: name, {})
    assert moved["image"] == 8 * (3 * 8 - 2)  # 3 x 3, padded above and below
    assert moved["pool"] == 256  # the dense layer reads it by another name


def test_what_by_density_would_not_fit_is_tried_by_size() -> None:
    """The dense small blocks must leave the larger region to the large block."""
    blocks = [Block("large", 96, 0, 3), Block("a", 40, 0, 3), Block("b", 40, 0, 3)]
    moved = Counter({"large": 96, "a": 400, "b": 400})
    specs = [RegionSpec("one", 100, "fast"), RegionSpec("two", 80, "slow")]
    made = spread(blocks, specs, moved, frozenset(), 4)
    assert not made.unplaced
    assert {b.name for b in made.members[0]} == {"large"}


def test_devices_without_regions_keep_their_arena() -> None:
    blocks = [Block("x", 64, 0, 1), Block("y", 32, 0, 1)]
    wishes = Wishes((RegionSpec("tcm", 100, "fast", False, 1),))
    regions, block_offsets = place_regions(blocks, {"y": 1}, wishes)
    assert [(r.name, r.device, r.bytes) for r in regions] == [
        ("arena", 0, 64), ("tcm", 1, 32),
    ]  # fmt: skip
    assert block_offsets["y"].region == 1


def test_a_thousand_blocks_take_seconds() -> None:
    chance = random.Random(0)
    blocks = [
        Block(f"b{i}", 4 * chance.randint(1, 500), i, i + chance.randint(1, 4))
        for i in range(1000)
    ]
    moved = Counter({b.name: b.bytes * chance.randint(1, 9) for b in blocks})
    start = time.process_time()
    made = spread(blocks, read_regions(THREE), moved, frozenset(), 4)
    assert not made.unplaced and time.process_time() - start < 8


# ---- options ------------------------------------------------------------------------


def test_a_region_reads_as_it_is_written() -> None:
    for text in ("a=16384:fast", "b=7", "c=1024:slow+weights", "d=64:fast+device3"):
        assert read_region(text).text == text
    assert read_region("x=2M").bytes == 2 * 1024**2
    assert read_region("x=3kB:plain").text == "x=3072"


@pytest.mark.parametrize("text", ["=4K", "X=1", "for=1", "device_1=1", "params=1"])
def test_names_that_c_cannot_have(text: str) -> None:
    with pytest.raises(BuildError, match="cannot be the name of a region"):
        read_region(text)


# ---- models -------------------------------------------------------------------------


def equal_bits(
    path: Path, regions: tuple[str, ...], **options: object
) -> pybuild.Library:
    model = pybuild.load(path)
    plain, split = model.build(), model.build(regions=regions, **options)
    assert [r.spec.bytes >= r.bytes for r in split.plan.regions if r.spec]
    nets = [plain.host(), split.host()]
    for piece in nets[1].memory:
        piece[:] = 0xA5  # what is read before it is written shows
    for given in samples(plain.plan.graph, 4):
        want, have = (net(**given.inputs) for net in nets)
        for name, value in want.items():
            np.testing.assert_array_equal(have[name], value)
    return split


@pytest.mark.parametrize(
    ("network", "weights"),
    [
        ("kws", "+weights"),
        ("vww", ""),
        *(
            pytest.param(network, weights, marks=pytest.mark.sweep)
            for network, weights in (("kws", ""), ("vww", "+weights"), ("ic", ""))
        ),
    ],
)
def test_real_networks_give_the_same_bits(network: str, weights: str) -> None:
    regions = (f"dtcm=12K:fast{weights}", "sram=40K", "psram=4M:slow")
    made = equal_bits(model_path(f"{network}_int8.tflite"), regions)
    uses = {use.name: use for use in made.report.regions}
    assert bool(uses["dtcm"].copied) == bool(weights)
    assert uses["dtcm"].moved > uses["psram"].moved
    assert all(use.bytes <= use.limit for use in uses.values())


def test_weights_read_once_stay_in_flash() -> None:
    """A dense layer has one call: a copy would move more than it saves."""
    made = pybuild.load(DIGITS).build(regions=["all=64K:fast+weights"])
    copied = [u.name for u in made.plan.unpacks]
    ops = {step.node.name: step.node.op for step in made.plan.steps}
    assert copied and all(
        not name.startswith(layer) for name in copied
        for layer, op in ops.items() if op == "dense"
    )  # fmt: skip
    assert (
        made.tables.unpack == "crt_copy_weights" and made.report.packed_constants == ()
    )
    assert {f for f in made.files() if "copy" in f} == {
        "crt/include/crt/copy.h", "crt/src/copy.c",
    }  # fmt: skip


@pytest.mark.sweep
def test_layers_unpacked_from_lz4_lie_in_regions_too() -> None:
    regions = ("dtcm=12K:fast+weights", "sram=72K")
    path = model_path("vww_int8.tflite")
    made = equal_bits(path, regions, compress="lz4-layer")
    assert made.tables.unpack == "crt_lz4_unpack"


def test_an_input_may_be_in_any_region(tmp_path: Path) -> None:
    """Its home, its flag of being used up, and keeping it."""
    model = classifier("net").model("scores")
    image = np.arange(192, dtype=np.int16).astype(np.int8).reshape(1, 8, 8, 3)
    want = model.build().host()(image=image)["scores"]
    for keep in ("reuse", "keep"):
        made = model.build(regions=["a=192", "b=1K"], input=keep)
        net = made.host()
        net.borrow_input("image")[...] = image
        net.run()
        np.testing.assert_array_equal(net.get_output("scores"), want)
        if keep == "keep":
            net.run()
            np.testing.assert_array_equal(net.get_output("scores"), want)


def test_scratch_and_hot_weights_are_handed_over_from_their_region() -> None:
    """Little fits in the first one; the second has the rest."""
    regions = ["tiny=16:fast", "near=64K:plain+weights"]
    made = pybuild.load(DIGITS).build(target="cortex-m4", regions=regions)
    assert [r.name for r in made.plan.regions if r.bytes] == ["tiny", "near"]
    own = {s.scratch_region for s in made.plan.steps if s.candidate.scratch}
    seen = {o.buffer for o in made.tables.operands if o.comment.startswith("scratch,")}
    assert seen == own and 1 in own
    copied = {name for name in made.plan.places if name.endswith("(copied)")}
    hot = [o.buffer for o in made.tables.operands if o.comment in copied]
    assert copied and set(hot) == {1}


def test_unused_regions_are_no_part_of_the_memory() -> None:
    made = pybuild.load(DIGITS).build(name="d", regions=["spare=4", "sram=64K"])
    header = made.sources()["d.h"]
    assert "#define D_SPARE_BYTES 0u" in header and "region spare;" not in header
    assert "#define D_MEMORY(sram) \\" in header
    assert "ARENA_BYTES" not in header
    assert [(u.name, u.bytes, u.holds) for u in made.report.regions if not u.bytes] == [
        ("spare", 0, ())
    ]


def test_the_limit_is_of_all_regions_together() -> None:
    model = pybuild.load(DIGITS)
    whole = model.build(regions=THREE).plan.arena_bytes
    assert model.build(regions=THREE, ram_limit=whole).plan.arena_bytes == whole
    with pytest.raises(LimitError, match=f"arena found has {whole} bytes, the"):
        model.build(regions=THREE, ram_limit=whole - 1)


def test_devices_have_regions_of_their_own() -> None:
    model = classifier("net").model("scores")
    options = {"target": {0: "generic", 1: "generic"}, "place": {"conv2d": 1}}
    want = model.build()
    made = model.build(regions=["tcm=256:fast+device1", "ram=64K:device1"], **options)
    assert [(r.name, r.device) for r in made.tables.regions] == [
        ("arena", 0), ("tcm", 1), ("ram", 1),
    ]  # fmt: skip
    (given,) = samples(want.plan.graph, 1)
    for backend in ("llvm", "c"):
        have = made.host(backend)(**given.inputs)
        np.testing.assert_array_equal(
            have["scores"], want.host()(**given.inputs)["scores"]
        )


def test_the_tree_compiles_and_its_selftest_passes(tmp_path: Path) -> None:
    regions = (THREE[0] + "+weights", *THREE[1:])
    pybuild.load(DIGITS).build(tmp_path / "tree", name="d", regions=regions)
    assert sanitized(tmp_path / "tree").startswith("d: self-test: no error")


@pytest.mark.parametrize("exclusive", [(), (("one", "two"),)])
def test_models_share_the_regions_of_an_image(
    exclusive: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    models = {
        name: classifier(name, seed=seed).model("scores")
        for seed, name in enumerate(("one", "two"), 1)
    }
    regions = ("fast=512:fast+weights", "sram=2K", "psram=64K:slow")
    made = pybuild.build_image(
        models, tmp_path / "tree", name="duo", regions=regions, exclusive=exclusive
    )
    pieces = {p.name: p.together for p in made.tables.pieces}
    assert all(u.bytes <= u.limit for u in made.report.regions)
    assert made.report.regions[0].bytes > 256
    same = pieces["fast"].at["one"] == pieces["fast"].at["two"]
    assert same == bool(exclusive)
    nets = made.host()
    for name, model in models.items():
        alone = model.build()
        (given,) = samples(alone.plan.graph, 1)
        want = alone.host()(**given.inputs)["scores"]
        np.testing.assert_array_equal(nets[name](**given.inputs)["scores"], want)
    assert sanitized(tmp_path / "tree").count("self-test: no error") == 2


@pytest.mark.parametrize("more", [0, 4, 8, 12])
def test_arenas_of_an_image_end_within_their_region(more: int) -> None:
    """Each begins at a multiple of 16, and what is left for it ends at one."""
    models = {name: classifier(name).model() for name in ("one", "two")}
    need = models["one"].build(plan="whole").plan.arena_bytes
    regions = [f"a={need + more}", f"b={2 * need + more}:slow"]
    made = pybuild.build_image(models, name="duo", regions=regions)
    for piece in made.tables.pieces:
        assert piece.spec is not None and piece.together.bytes <= piece.spec.bytes


def test_buffers_of_connections_need_room_too() -> None:
    regions = ["a=320", "b=320", "c=20", "d=16"]
    made = pybuild.build_image(
        parts(), name="trio", regions=regions, connect=["one.scores=head.image"]
    )
    assert [bool(p.together.buffers) for p in made.tables.pieces].count(True) == 1
    nets = made.host()
    image = np.arange(192, dtype=np.int16).astype(np.int8).reshape(1, 8, 8, 3)
    nets["one"].run(image=image)
    nets["head"].run()
    apart = parts()
    scores = apart["one"].build().host()(image=image)["scores"]
    want = apart["head"].build().host()(image=scores)["out"]
    np.testing.assert_array_equal(nets["head"].get_output("out"), want)
    with pytest.raises(LimitError, match="buffers of the connections, 5 bytes, fit in"):
        pybuild.build_image(
            parts(), regions=regions[:-1], connect=["one.scores=head.image"]
        )
