"""What any element-wise, pooling or moving operator takes for each value that it makes,
as a table with ceilings. `python -m tests.perf.any_operator FIRST LAST [CORE...]` lists
layers.
"""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Sequence

from tests.bench.costs import Row, Table
from tests.figures.store import Ready, store
from tests.perf.measure import EMITS, Measured, from_facts, measured, ready
from tests.perf.operators import KINDS, Operator, operator

COUNT = 4  # of each operator
LEAST_CHANNELS = 4  # of layers that have a ceiling: a vector has as many words
CORES = ("cortex-m4", "cortex-m55")
One = Measured[Operator]
# instructions for each value, at most, by LLVM: of each core
CEILINGS: dict[str, tuple[float, float]] = {
    "add": (9.2, 3.4),
    "sub": (7.0, 2.7),
    "mul": (19.0, 4.4),
    "minimum": (13.5, 2.8),
    "maximum": (11.5, 0.9),
    "average pool": (18.0, 7.6),
    "max pool": (44.0, 7.4),
    "mean": (7.4, 1.1),
    "softmax": (27.0, 17.5),
    "concat": (1.9, 0.5),
    "pad": (2.0, 0.4),
    "resize bilinear": (23.0, 11.0),
    "resize nearest": (10.5, 9.5),
    "logistic": (7.3, 5.3),
    "tanh": (7.3, 5.3),
    "hard swish": (8.2, 5.5),
    "leaky relu": (7.3, 5.3),
    "prelu": (15.5, 4.4),
    "requantise": (7.3, 5.3),
    "quantise": (8.0, 3.0),
    "dequantise": (6.9, 1.6),
    "add int16": (17.0, 5.2),
    "sub int16": (17.0, 5.3),
    "mul int16": (11.5, 3.0),
    "minimum int16": (20.0, 1.7),
    "maximum int16": (20.0, 4.7),
    "average pool int16": (168.0, 50.0),
    "max pool int16": (256.0, 49.0),
    "mean int16": (8.4, 3.7),
    "softmax int16": (58.0, 39.0),
    "concat int16": (5.9, 2.9),
    "pad int16": (7.0, 4.2),
    "resize bilinear int16": (24.0, 22.5),
    "resize nearest int16": (9.8, 6.5),
    "logistic int16": (31.5, 27.0),
    "tanh int16": (35.5, 31.0),
    "leaky relu int16": (27.0, 21.0),
    "requantise int16": (11.5, 8.4),
    "quantise int16": (8.0, 2.5),
    "dequantise int16": (5.9, 1.4),
}


def ceiling(kind: str, core: str) -> float:
    """Instructions for each value, at most, by LLVM."""
    return CEILINGS[kind][CORES.index(core)]


def has_ceiling(made: Operator) -> bool:
    return made.channels >= LEAST_CHANNELS


def is_above(one: One) -> bool:
    most = ceiling(one.made.kind, one.core)
    return one.emit == "obj" and has_ceiling(one.made) and one.per_mac > most


@functools.cache
def found() -> tuple[One, ...]:
    """Every layer on both cores by both back ends."""
    ways = [
        (kind, seed, core, emit)
        for kind in KINDS
        for core in CORES
        for emit in EMITS
        for seed in range(COUNT)
    ]
    named = {f"{__name__}: {', '.join(map(str, way))}": way for way in ways}
    kept = store().all(_ready, named)
    return tuple(
        from_facts(operator(*way[:2]), *way[2:], kept[what])
        for what, way in named.items()
    )


def _ready(kind: str, seed: int, core: str, emit: str) -> Ready:
    return ready(operator(kind, seed), core, emit)


def any_operator() -> Table:
    return table(found())


def table(every: Sequence[One]) -> Table:
    rows = [_row(every, kind, core) for kind in KINDS for core in CORES]
    says = (
        f"{COUNT} layers of each operator, from seeds (`tests/perf/operators.py`): "
        "shapes that no vector divides, scales as a converter gives them. Instructions "
        "of their kernels for each value of the output (a mean: of the input), by gcc "
        "and by LLVM. Each value was compared with LiteRT's or, of rules of rounding "
        "that it does not have, with numpy's. The ceilings are LLVM's, for layers of "
        f"{LEAST_CHANNELS} channels and more; few: those of fewer, the most by LLVM. "
        "Windows of pools have up to 25 cells."
    )
    columns = (
        "operator", "core", "gcc, median", "gcc, most", "LLVM, median", "LLVM, most",
        "ceiling", "held", "few", "unequal", "the most",
    )  # fmt: skip
    return Table("Any operator", says, columns, tuple(rows))


def _row(every: Sequence[One], kind: str, core: str) -> Row:
    some = [m for m in every if (m.made.kind, m.core) == (kind, core)]
    usual = [m for m in some if has_ceiling(m.made)]
    figures = []
    for emit in EMITS:
        spent = [m.per_mac for m in usual if m.emit == emit]
        figures += [f"{statistics.median(spent):.2f}", f"{max(spent):.2f}"]
    few = [m.per_mac for m in some if m.emit == "obj" and m not in usual]
    most = max((m for m in usual if m.emit == "obj"), key=lambda m: m.per_mac)
    return (
        kind,
        core,
        *figures,
        f"{ceiling(kind, core):.1f}",
        not any(map(is_above, some)),
        f"{max(few):.2f}" if few else "",
        sum(m.unequal for m in some),
        f"{most.made.words}: {most.kernels[-1]}",
    )


def main(arguments: Sequence[str]) -> int:
    first, last = (int(a) for a in arguments[:2])
    for kind in KINDS:
        for seed in range(first, last):
            for core in arguments[2:] or CORES:
                for emit in EMITS:
                    m = measured(operator(kind, seed), core, emit)
                    far = m.estimate / max(1, m.instructions)
                    flag = "^" if is_above(m) else " "
                    print(
                        f"{kind:22} {seed} {core[7:]:3} {emit:3} {m.per_mac:7.2f}"
                        f"{flag} est {far:.2f} bad {m.unequal} {m.made.words} "
                        f"{','.join(m.kernels)}",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
