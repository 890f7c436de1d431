"""What any layer takes, by class and core, as tables with ceilings; also what the
cost model says beside it. `python -m tests.perf.any_layer FIRST LAST` lists layers.
"""

from __future__ import annotations

import functools
import math
import statistics
import sys
from collections.abc import Iterator, Sequence

from tests.bench.costs import Row, Table
from tests.figures.store import Ready, store
from tests.perf.layers import CLASSES, Made, layer
from tests.perf.measure import EMITS, Measured, from_facts, measured, ready

COUNT = 300
CORES = ("cortex-m4", "cortex-m55")
# one in so many of the layers is measured on these, too
OTHERS, ONE_IN = ("cortex-m3", "cortex-m0", "rv32imc"), 6
# instructions per product, at most
CEILINGS = {
    "cortex-m4": (1.15, 1.15, 2.2, 2.6, 1.9, 1.1, 1.4),
    "cortex-m55": (0.25, 0.25, 0.7, 0.7, 0.5, 0.25, 0.35),
    "cortex-m3": (2.4, 2.4),
    "rv32imc": (2.4, 2.4),
    "cortex-m0": (5.5, 5.5),
}
# they are for layers whose output row has so many values, of so many products
LEAST_OUTPUTS, LEAST_MACS = 16, 1000
# the cost model may be so far from what is counted
FURTHEST = 40
FAR = 0.08
# why a layer takes more
REASONS = {
    "16 bits": "int16: its sums have 64 bits",
    "plain": "by the kernel for any core",
    "padding": "a third or more of the window stands on padding, and is computed",
    "apart": "stride 2: each column is woven or widened, and half of them shared",
    "taps": "weights of -128: a word holds two taps of one channel, not of two",
    "rule": "channels end by the rule itself, at some ten instructions each",
    "few inputs": "less than 300 products an output: its end is a good part of all",
    "scalar": "a core that multiplies one by one: ends and loads count",
    "narrow": "rows of less than 8 pixels: what is left over counts",
    "signed": "what ends a sum depends on its sign: one or two instructions an output",
    "gcc": "LLVM keeps to the ceiling; gcc moves and spills",
}
BACKENDS = dict(zip(("C, gcc", "LLVM"), EMITS, strict=True))


def ceiling(kind: str, core: str, emit: str) -> float | None:
    """Of a class on a core; None: none is asked for."""
    if (core, emit) == ("cortex-m55", "c"):
        return None
    return dict(zip(CLASSES, CEILINGS[core], strict=False)).get(kind)


def has_ceiling(made: Made) -> bool:
    """Not one of few outputs: its call and its ends are most of what it takes."""
    return made.row_outputs >= LEAST_OUTPUTS and made.row_macs >= LEAST_MACS


def is_above(one: Measured[Made]) -> bool:
    most = ceiling(one.made.kind, one.core, one.emit)
    return most is not None and has_ceiling(one.made) and one.per_mac > most


@functools.cache
def found() -> tuple[Measured[Made], ...]:
    """Every layer on every core by both back ends."""
    ways = [(seed, core) for core in CORES for seed in range(COUNT)]
    ways += [(seed, core) for core in OTHERS for seed in range(0, COUNT, ONE_IN)]
    each = [(*way, emit) for way in ways for emit in EMITS]
    named = {f"{__name__}: {', '.join(map(str, way))}": way for way in each}
    kept = store().all(_ready, named)
    return tuple(
        from_facts(layer(way[0]), *way[1:], kept[what]) for what, way in named.items()
    )


def _ready(seed: int, core: str, emit: str) -> Ready:
    return ready(layer(seed), core, emit)


def any_layer() -> Table:
    rows = [
        (core, kind, back, *_figures(some, ceiling(kind, core, BACKENDS[back])))
        for core, kind, back, some in _groups(found())
    ]
    says = (
        f"{COUNT} layers made from seeds (`tests/perf/layers.py`): instructions of "
        "their kernels for each multiplication that the layer means, padding included, "
        "of a transposed convolution without the zeros between. Every value was "
        "compared with LiteRT's or, of rules of rounding that LiteRT does not have, "
        "with numpy's. The ceilings of a Cortex-M55 are LLVM's; all are for layers of "
        f"at least {LEAST_OUTPUTS} values and {LEAST_MACS:,} products each row of the "
        "output. Small: layers of less, which count as above in no class. Plain: by "
        "the kernel "
        f"for any core. On {', '.join(OTHERS)} one in {ONE_IN}."
    )
    columns = (
        "core", "class", "back end", "layers", "least", "median", "most", "ceiling",
        "small", "above", "plain", "unequal", "held",
    )  # fmt: skip
    return Table("Any layer", says, columns, tuple(rows))


def _groups(
    every: Sequence[Measured[Made]],
) -> Iterator[tuple[str, str, str, list[Measured[Made]]]]:
    for core in (*CORES, *OTHERS):
        for kind in CLASSES:
            for back, emit in BACKENDS.items():
                key = (core, kind, emit)
                some = [m for m in every if (m.core, m.made.kind, m.emit) == key]
                if some:
                    yield core, kind, back, some


def _figures(some: Sequence[Measured[Made]], most: float | None) -> Row:
    spent = sorted(m.per_mac for m in some)
    above = sum(map(is_above, some))
    small = sum(not has_ceiling(m.made) for m in some)
    plain, unequal = sum(m.plain for m in some), sum(m.unequal for m in some)
    shown = [f"{n:.2f}" for n in (spent[0], statistics.median(spent), spent[-1])]
    limit = "" if most is None else f"{most:.2f}"
    held: object = "" if most is None else above == 0
    return (
        len(some),
        *shown,
        limit,
        small,
        above if limit else "",
        plain,
        unequal,
        held,
    )


def reason(one: Measured[Made]) -> str:
    """The first of REASONS that its shape or its kernel has; "": none is known."""
    made, kernel, core = one.made, one.kernels[-1], one.core
    vectors = core == "cortex-m55"
    taps = math.prod(made.kernel)
    apart = made.stride > 1 and made.kind.startswith("depthwise")
    known = {
        "16 bits": "_s16" in kernel,
        "plain": one.plain,
        "padding": made.on_padding > 0.3,
        "apart": apart or (vectors and made.stride > 1),
        "taps": "_ones" in kernel or (made.whole_range and not vectors),
        "rule": "_exact" in kernel,
        "few inputs": made.inputs * taps < 300
        and not made.kind.startswith("depthwise"),
        "scalar": core not in CORES,
        "narrow": made.columns < 8,
        "signed": "_signed" in kernel or "_rounded_" in kernel,
        "gcc": one.emit == "c",
    }
    return next((name for name, holds in known.items() if holds), "")


def above_ceilings() -> Table:
    """How many are above, by reason, and how far the furthest of them is."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for m in filter(is_above, found()):
        groups.setdefault((m.core, m.made.kind, reason(m)), []).append(_times(m))
    rows = [
        (*key, len(times), f"{statistics.median(times):.2f}", f"{max(times):.2f}")
        for key, times in sorted(groups.items(), key=lambda one: -len(one[1]))
    ]
    says = (
        "Of the layers above those beyond their ceiling, by both back ends; how many "
        "times as much they take, and why: "
        + "; ".join(f"{k}: {v}" for k, v in REASONS.items())
    )
    columns = ("core", "class", "reason", "layers", "times, median", "times, most")
    return Table("Any layer: above its ceiling", says, columns, tuple(rows))


def _times(one: Measured[Made]) -> float:
    return one.per_mac / (ceiling(one.made.kind, one.core, one.emit) or 1)


def furthest() -> Table:
    """The layers that are furthest above."""
    some = sorted(filter(is_above, found()), key=_times, reverse=True)[:FURTHEST]
    rows = [
        (m.made.seed, m.core, m.emit, m.made.kind, f"{m.made.words}, {m.made.rounding}",
         f"{m.per_mac:.2f}", f"{_times(m):.2f}", reason(m), m.kernels[-1])
        for m in some
    ]  # fmt: skip
    says = f"The {FURTHEST} that are furthest beyond their ceiling."
    columns = (
        "seed", "core", "emit", "class", "layer", "per MAC", "times", "reason",
        "kernel",
    )  # fmt: skip
    return Table("Any layer: the furthest", says, columns, tuple(rows))


def estimates() -> Table:
    """The cost model beside what was counted, by LLVM."""
    rows = []
    for core in (*CORES, *OTHERS):
        families = sorted({_family(m) for m in found() if m.core == core})
        for family in families:
            some = [
                m.estimate / m.instructions
                for m in found()
                if (m.core, m.emit, _family(m)) == (core, "obj", family)
            ]
            if not some:
                continue
            far = sum(abs(n - 1) > FAR for n in some)
            shown = [
                f"{n:.2f}" for n in (min(some), statistics.median(some), max(some))
            ]
            rows.append((core, family, len(some), *shown, far))
    says = (
        "Of the same layers, built by LLVM: what the cost model says beside what was "
        f"counted. Far: by more than {FAR:.0%}."
    )
    columns = ("core", "kernels", "layers", "least", "median", "most", "far")
    return Table("Any layer: the cost model", says, columns, tuple(rows))


def _family(one: Measured[Made]) -> str:
    """As kernels begin: operator and kind."""
    return "_".join(one.kernels[-1].split("_")[:2])


def main(arguments: Sequence[str]) -> int:
    first, last = (int(a) for a in arguments[:2])
    for seed in range(first, last):
        for core in arguments[2:] or CORES:
            for emit in EMITS:
                m = measured(layer(seed), core, emit)
                flags = "".join(("^" if is_above(m) else " ", "P" if m.plain else " "))
                far = m.estimate / m.instructions
                words = f"{m.made.kind}: {m.made.words}, {m.made.rounding}"
                print(
                    f"{seed:4} {core[-3:]} {emit:3} {m.per_mac:6.3f}{flags} "
                    f"est {far:5.2f} bad {m.unequal} {words} {','.join(m.kernels)}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
