"""What any layer takes, by class and core, as tables with ceilings; also what the
cost model says beside it. `python -m tests.perf.any_layer FIRST LAST` lists layers.
"""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Iterator, Sequence

from tests.bench.costs import Row, Table
from tests.perf.layers import CLASSES, layer
from tests.perf.measure import EMITS, Measured, measured

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
# the cost model may be so far from what is counted
FAR = 0.08
BACKENDS = dict(zip(("C, gcc", "LLVM"), EMITS, strict=True))


def ceiling(kind: str, core: str, emit: str) -> float | None:
    """Of a class on a core; None: none is asked for."""
    if (core, emit) == ("cortex-m55", "c"):
        return None
    return dict(zip(CLASSES, CEILINGS[core], strict=False)).get(kind)


def is_above(one: Measured) -> bool:
    most = ceiling(one.made.kind, one.core, one.emit)
    return most is not None and one.per_mac > most


@functools.cache
def found() -> tuple[Measured, ...]:
    """Every layer on every core by both back ends."""
    ways = [(seed, core) for core in CORES for seed in range(COUNT)]
    ways += [(seed, core) for core in OTHERS for seed in range(0, COUNT, ONE_IN)]
    return tuple(
        measured(layer(seed), core, emit) for seed, core in ways for emit in EMITS
    )


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
        "with numpy's. The ceilings of a Cortex-M55 are LLVM's. Plain: by the kernel "
        f"for any core. On {', '.join(OTHERS)} one in {ONE_IN}."
    )
    columns = (
        "core", "class", "back end", "layers", "least", "median", "most", "ceiling",
        "above", "plain", "unequal", "held",
    )  # fmt: skip
    return Table("Any layer", says, columns, tuple(rows))


def _groups(
    every: Sequence[Measured],
) -> Iterator[tuple[str, str, str, list[Measured]]]:
    for core in (*CORES, *OTHERS):
        for kind in CLASSES:
            for back, emit in BACKENDS.items():
                key = (core, kind, emit)
                some = [m for m in every if (m.core, m.made.kind, m.emit) == key]
                if some:
                    yield core, kind, back, some


def _figures(some: Sequence[Measured], most: float | None) -> Row:
    spent = sorted(m.per_mac for m in some)
    above = sum(map(is_above, some))
    plain, unequal = sum(m.plain for m in some), sum(m.unequal for m in some)
    shown = [f"{n:.2f}" for n in (spent[0], statistics.median(spent), spent[-1])]
    limit = "" if most is None else f"{most:.2f}"
    held: object = "" if most is None else above == 0
    return (len(some), *shown, limit, above if limit else "", plain, unequal, held)


def above_ceilings() -> Table:
    """The layers above, those that are furthest first."""
    some = list(filter(is_above, found()))
    far = {m: m.per_mac / (ceiling(m.made.kind, m.core, m.emit) or 1) for m in some}
    some.sort(key=far.__getitem__, reverse=True)
    rows = [
        (m.made.seed, m.core, m.emit, m.made.kind, f"{m.made.words}, {m.made.rounding}",
         f"{m.per_mac:.2f}", f"{far[m]:.2f}", m.kernels[-1])
        for m in some
    ]  # fmt: skip
    says = (
        "Of the layers above those beyond their ceiling, and how many times as much "
        "they take. The reason is in the name of the kernel and in the shape."
    )
    columns = (
        "seed", "core", "emit", "class", "layer", "per MAC", "times", "kernel"
    )  # fmt: skip
    return Table("Any layer: above its ceiling", says, columns, tuple(rows))


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


def _family(one: Measured) -> str:
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
