"""Tries one model on all chips of boards/soc: its needs there and the chip's memory,
the estimated time, and what would make it fit.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, replace
from typing import Any

from pybuild.chips.pace import cycles_on
from pybuild.entry import load
from pybuild.errors import BuildError
from pybuild.files.processes import without_main, worker_pool
from pybuild.library import Library
from pybuild.model import Model
from pybuild.model_source import Source
from pybuild.options.many import FitOptions
from pybuild.options.option import options_in, parse_options
from pybuild.options.table import BuildOptions
from pybuild.package.totals import CODE, STACK, totals
from pybuild.passes.ends.integer_ends import integer_ends
from pybuild.progress import Progress, Steps, silent
from pybuild.records import dataclass
from pybuild.savings import changes
from pybuild.select.build_seconds import nominal_seconds
from pybuild.select.core_prices import plan_key
from pybuild.targets.board import board_names, load_board
from pybuild.targets.chip import Chip, all_chips
from pybuild.targets.names import target_named

# bytes of crt for several cores; of digits: 1,126 on a Cortex-M0+, 772 on an M33
CORES_CODE = 1152
AVR_CODE = 2  # times that of 32 bits; measured of digits: 1.6
_FASTER = ("--optimise speed",)
_ALIGN = 16
_LONG = 2.0  # nominal seconds of all plans, from which processes are worth their start


@dataclass(frozen=True)
class Need:
    """Units  bytes."""

    needed: int
    has: int

    @property
    def missing(self) -> int:
        return max(self.needed - self.has, 0)


@dataclass(frozen=True)
class ChipFit:
    """The result for one chip.

    fits      with the options that were asked for, and within the latency
    cores     that compute a run: as many as were asked for, where the chip has so many
              equal ones and they take less time than one
    boards    of `crt boards`, that have it
    cycles    of one inference, estimated; seconds: at the chip's highest clock
    wait_states  of the flash at that clock, which `cycles` do not have; None: no source
    microjoules  of one inference; None: no source has what the chip draws, or several
              cores compute
    missing   in words, what it lacks; (): nothing
    options   words of the command line with which it fits; (): it does, or none help
    ways      all such options that were tried, the first of them `options`
    """

    chip: str
    title: str
    core: str
    target: str
    boards: tuple[str, ...]
    fits: bool
    ram: Need
    flash: Need
    cycles: int
    seconds: float
    microjoules: float | None
    missing: tuple[str, ...]
    options: tuple[str, ...]
    source: str
    wait_states: int | None = None
    ways: tuple[tuple[str, ...], ...] = ()
    cores: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fit(
    model: Model | Source,
    latency: float | str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> tuple[ChipFit, ...]:
    """The results for all chips: first those that the model fits, the fastest first.

    model    what pybuild.load takes, or gave
    latency  seconds that an inference may take, or a text like "50ms"; None: any
    options  of Model.build, but for `target`
    Errors   BuildError; a `ram_limit` that no plan keeps
    """
    most: float | None = options_in(FitOptions)[0].read(latency)
    model = model if isinstance(model, Model) else load(model)
    owners, chips = _owners(), all_chips()
    groups = _groups(chips)
    jobs = [
        _Job(model, tuple((one, owners.get(one.name, ())) for one in group), most,
             options)
        for group in groups
    ]  # fmt: skip
    step, found = Steps(progress, len(chips)), list[ChipFit]()
    for results in _results(jobs):
        for one in results:
            found.append(one)
            step()
    return tuple(sorted(found, key=lambda one: (not one.fits, one.seconds, one.chip)))


def _groups(chips: Sequence[Chip]) -> list[list[Chip]]:
    """The chips, those together that get the same plan."""
    found: dict[Hashable, list[Chip]] = {}
    for chip in chips:
        key = plan_key(target_named(chip.core.target))
        found.setdefault(key, []).append(chip)
    return list(found.values())


@dataclass(frozen=True)
class _Job:
    """Chips that get the same plan, each with its boards, and what is asked of them."""

    model: Model
    chips: tuple[tuple[Chip, tuple[str, ...]], ...]
    latency: float | None
    options: Mapping[str, Any]

    def run(self) -> list[ChipFit]:
        builds = _Builds(self.model, self.options)
        return [_fit(one, builds, self.latency, boards) for one, boards in self.chips]


def _results(jobs: Sequence[_Job]) -> Iterator[list[ChipFit]]:
    """The results of all jobs, on all processors where that saves seconds."""
    graph, count = jobs[0].model.graph, min(os.cpu_count() or 1, len(jobs))
    weights = sum(value.nbytes for value in graph.constants.values())
    if len(jobs) * nominal_seconds(len(graph.nodes), weights, True) < _LONG:
        count = 1
    if count == 1:
        yield from (job.run() for job in jobs)
        return
    pool = worker_pool(count)
    try:
        with without_main():
            begun = [pool.submit(_Job.run, job) for job in jobs]
        for done in as_completed(begun):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def verdict(found: Sequence[ChipFit]) -> str:
    """How many chips fit, and with which option the most."""
    fits = sum(one.fits for one in found)
    said = f"fits {fits} of {len(found)} chips"
    ways = Counter(way for one in found for way in map(_general, one.ways))
    if not ways:
        return said
    way, more = max(ways.items(), key=lambda pair: pair[1])
    return f"{said}; {fits + more} with {' '.join(way)}"


def _general(way: tuple[str, ...]) -> tuple[str, ...]:
    """The option without the number that is each chip's own."""
    return tuple(re.sub(r" \d+$", "", option) for option in way)


def _owners() -> dict[str, tuple[str, ...]]:
    """The boards of each chip."""
    found: dict[str, tuple[str, ...]] = {}
    for name in board_names():
        chip = load_board(name).facts.name
        found[chip] = (*found.get(chip, ()), name)
    return found


def _cores(options: Mapping[str, Any]) -> int:
    own = {word: options[word] for word in ("cores",) if word in options}
    return parse_options(BuildOptions, own)[0].cores


class _Builds:
    """Plans of one model, each made once, for targets that all get the same."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        self.model, self.options = model, dict(options)
        self.cores = _cores(options)
        self.is_float = any(t.dtype.name == "FLOAT32" for t in _weights(model))
        self._made: dict[tuple[int, str], Library | None] = {}

    def of(self, chip: Chip) -> Library:
        made = self.tried(chip)
        assert made is not None, "only limits are tried"
        return made

    def tried(self, chip: Chip, **changed: Any) -> Library | None:
        """The build for a chip's cores; None if there is no such plan."""
        cores = self.cores if self.cores <= chip.equal_cores else 1
        key = cores, repr(sorted(changed.items()))
        if key not in self._made:
            given = {**self.options, **changed, "target": chip.core.target}
            if cores < self.cores:
                given["cores"] = cores
            model = self.model
            if given.pop("boundary", ""):
                model = model.with_graph(integer_ends(model.graph))
            try:
                self._made[key] = model.build(**given)
            except BuildError:
                if not changed:
                    raise
                self._made[key] = None
        return self._made[key]


def _weights(model: Model) -> Iterator[Any]:
    graph = model.graph
    return (graph.tensor(n) for n, v in graph.constants.items() if v.ndim > 1)


def _fit(
    chip: Chip, builds: _Builds, latency: float | None, boards: tuple[str, ...]
) -> ChipFit:
    target = chip.core.target
    library = builds.of(chip)
    ram, flash, cycles = (
        _ram(library, chip),
        _flash(library, chip),
        cycles_on(target, library),
    )
    seconds = cycles / chip.hz
    missing = []
    for name, need in (("RAM", ram), ("flash", flash)):
        if need.missing:
            missing.append(f"{need.missing:,} bytes of {name}")
    if latency is not None and seconds > latency:
        missing.append(f"{seconds / latency:.1f} times too slow")

    def in_time(other: Library) -> bool:
        return latency is None or cycles_on(target, other) / chip.hz <= latency

    ways = tuple(_ways(chip, builds, library, in_time)) if missing else ()
    return ChipFit(
        chip=chip.name,
        title=chip.title,
        core=chip.core.name,
        target=chip.core.target,
        boards=boards,
        fits=not missing,
        ram=ram,
        flash=flash,
        cycles=cycles,
        seconds=seconds,
        microjoules=chip.microjoules(cycles) if library.tables.cores == 1 else None,
        missing=tuple(missing),
        options=ways[0] if ways else (),
        source=chip.source,
        wait_states=chip.wait_states,
        ways=ways,
        cores=library.tables.cores,
    )


def _ram(library: Library, chip: Chip) -> Need:
    flash = library.report.flash
    needed = totals(library.report).ram + STACK * library.tables.cores
    if chip.core.arch == "avr":  # its compiler copies constants to RAM
        needed += flash.weights + flash.tables
    return Need(needed, chip.ram.size)


def _flash(library: Library, chip: Chip) -> Need:
    made = totals(library.report)
    code = made.code + CODE + (CORES_CODE if library.tables.cores > 1 else 0)
    if chip.core.arch == "avr":
        code *= AVR_CODE
    return Need(made.flash - made.code + code, chip.flash.size)


def _ways(
    chip: Chip, builds: _Builds, library: Library, in_time: Callable[[Library], bool]
) -> Iterator[tuple[str, ...]]:
    """The options to try that make the model fit, the cheapest first; those that are
    too slow last."""
    slow: list[tuple[str, ...]] = []
    for words, changed in _ladder(chip, library):
        other = builds.tried(chip, **changed)
        if other is None or _ram(other, chip).missing or _flash(other, chip).missing:
            continue
        if in_time(other):
            yield words
        elif other.options != library.options and words != _FASTER:
            slow.append(words)
    yield from slow
    if builds.is_float and _would_fit_as_int8(chip, library):
        yield ("--quantise SAMPLES",)


def _ladder(
    chip: Chip, library: Library
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Options that save what is scarce, the cheapest first."""
    ram, flash = _ram(library, chip), _flash(library, chip)
    chosen = library.options
    if not ram.missing and not flash.missing:
        yield _FASTER, {"optimise": "speed"}
        return
    small_enough = _least_flash(library) <= flash.has
    smaller = {"optimise": "size"} if flash.missing else {}
    words = ("--optimise size",) if flash.missing else ()
    if not ram.missing:
        if small_enough:
            yield words, smaller
        if flash.missing < library.report.flash.weights and chosen.compress == "none":
            yield ("--compress lz4-layer",), {"compress": "lz4-layer"}
        return
    room = (library.report.ram.arena - ram.missing) // _ALIGN * _ALIGN
    if room <= 0 or not small_enough:
        return
    least = library.least_arena() if chosen.plan == "rows" else None
    if least is not None and least <= room:
        yield (f"--ram-limit {room}", *words), {"ram_limit": room, **smaller}
    for option, changed in changes(library):
        if "lazy" not in changed:  # the chip has those bytes, too
            yield (*option, *words), {**changed, **smaller}
    if chosen.input == "keep":
        more = {"optimise": "ram", "input": "reuse"}
        yield ("--optimise ram", "--input reuse"), more


def _least_flash(library: Library) -> int:
    """The bytes of flash that any plan of the model needs: its weights, in the types
    of the fewest bytes that may hold them."""
    if library.options.compress != "none":
        return 0
    graph, least = library.plan.graph, 0
    for name, value in graph.constants.items():
        if value.ndim < 2 or name in graph.parameters:
            continue
        few = value.dtype.kind == "f" or value.dtype.name == "int16"
        few = few or int(value.max()) - int(value.min()) < 16
        least += value.nbytes // (2 if few else 1)
    return min(least, library.report.flash.weights)


def _would_fit_as_int8(chip: Chip, library: Library) -> bool:
    """True if the model would fit with int8 instead of floats: weights and tensors are
    a quarter."""
    ram, flash, report = _ram(library, chip), _flash(library, chip), library.report
    saved = replace(ram, needed=ram.needed - report.ram.arena * 3 // 4)
    held = replace(flash, needed=flash.needed - report.flash.weights * 3 // 4)
    return not saved.missing and not held.missing
