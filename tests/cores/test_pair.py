"""Cores of Unicorn on one memory: slices of time from seeds, equal bits, no race; and
what a run takes from begin to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cores.nets import small
from tests.cores.pair import M0, M33, RV32, Core, Pair, drawn, even, firmware, samples
from tests.graphs.networks import keyword_spotting

CORES = {"m0": M0, "m33": M33, "rv32": RV32}


@pytest.mark.parametrize(("name", "cores"), [("m0", 2), ("m33", 3), ("rv32", 2)])
def test_any_interleaving_gives_the_same_bits(
    name: str, cores: int, tmp_path: Path
) -> None:
    _interleaved(CORES[name], cores, range(2), tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CORES)
def test_two_hundred_interleavings(name: str, tmp_path: Path) -> None:
    _interleaved(CORES[name], 2, range(200), tmp_path)


def _interleaved(core: Core, cores: int, seeds: range, folder: Path) -> None:
    library = small().build(target=core.target, cores=cores)
    pair = Pair(firmware(library, core, folder), core, cores)
    data = samples(library, 1)
    pair.given(data)
    pair.call("alone")
    wanted = pair.outputs()
    pair.check()
    for seed in seeds:
        pair.given(samples(library, 2))  # the output is another
        pair.call("alone")
        assert pair.outputs() != wanted
        pair.given(data)
        pair.together(drawn(seed, cores))
        assert pair.outputs() == wanted, seed
        assert pair.races == [], seed


def test_a_race_is_found_though_all_bits_are_right(tmp_path: Path) -> None:
    """Slices that meet in their bytes: each core computes the whole call."""
    library = small().build(target="cortex-m33", cores=2)
    firmware(library, M33, tmp_path)
    source = tmp_path / "small.c"
    text = source.read_text()
    at = next(s for s in library.tables.steps if s.slices)
    second = f"    &small_args[{at.slices[1]}],"
    assert second in text
    source.write_text(text.replace(second, f"    &small_args[{at.args}],"))
    elf = firmware(library, M33, tmp_path, write=False)
    pair = Pair(elf, M33, 2)
    pair.given(samples(library, 1))
    pair.check()
    pair.together(even(2))
    assert pair.races


# of instructions from begin to end, two cores over one
AIMS = {"m0": 0.54, "m33": 0.57, "rv32": 0.64}


@pytest.mark.sweep
@pytest.mark.parametrize("name", CORES)
def test_keyword_spotting_on_two_cores(name: str, tmp_path: Path) -> None:
    core, model = CORES[name], keyword_spotting().model()
    counts = []
    for cores in (1, 2):
        library = model.build(target=core.target, cores=cores)
        folder = tmp_path / str(cores)
        folder.mkdir()
        pair = Pair(firmware(library, core, folder), core, cores)
        pair.given(samples(library, 1))
        counts.append(pair.together(even(2)) if cores > 1 else pair.call("alone"))
    assert counts[1] < AIMS[name] * counts[0]
