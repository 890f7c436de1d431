"""What any element-wise, pooling or moving operator takes for each value that it makes,
as a table with ceilings. `python -m tests.perf.any_operator FIRST LAST [CORE...]` lists
layers.
"""

from __future__ import annotations

import functools
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.bench.costs import Row, Table
from tests.perf.measure import EMITS, Measured, measured
from tests.perf.operators import KINDS, Operator, operator

COUNT = 5  # of each operator
CORES = ("cortex-m4", "cortex-m55")
One = Measured[Operator]


def ceiling(kind: str, core: str) -> float:
    """Instructions for each value, at most, by LLVM; layers of few values apart."""
    return CEILINGS[kind][CORES.index(core)]


def each(one: One) -> float:
    """Instructions for each value of the output."""
    return one.per_mac


def is_above(one: One) -> bool:
    return one.emit == "obj" and each(one) > ceiling(one.made.kind, one.core)


@functools.cache
def found() -> tuple[One, ...]:
    """On all processors at once: what is counted is the same however busy they are."""
    ways = [
        (kind, seed, core, emit)
        for kind in KINDS
        for core in CORES
        for emit in EMITS
        for seed in range(COUNT)
    ]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return tuple(pool.map(_measured, ways, chunksize=10))


def _measured(way: tuple[str, int, str, str]) -> One:
    return measured(operator(way[0], way[1]), *way[2:])


def any_operator() -> Table:
    start = time.monotonic()
    found()
    minutes = (time.monotonic() - start) / 60
    rows = [_row(kind, core) for kind in KINDS for core in CORES]
    says = (
        f"{COUNT} layers of each operator, from seeds (`tests/perf/operators.py`): "
        "shapes that no vector divides, scales as a converter gives them. Instructions "
        "of their kernels for each value of the output, by gcc and by LLVM. Each value "
        "was compared with LiteRT's or, of rules of rounding that it does not have, "
        "with numpy's. The ceilings are LLVM's. Measured in "
        f"{minutes:.0f} minutes on {os.cpu_count()} processors."
    )
    columns = (
        "operator", "core", "gcc, median", "gcc, most", "LLVM, median", "LLVM, most",
        "ceiling", "held", "unequal", "the most",
    )  # fmt: skip
    return Table("Any operator", says, columns, tuple(rows))


def _row(kind: str, core: str) -> Row:
    some = [m for m in found() if (m.made.kind, m.core) == (kind, core)]
    figures = []
    for emit in EMITS:
        spent = [each(m) for m in some if m.emit == emit]
        figures += [f"{statistics.median(spent):.2f}", f"{max(spent):.2f}"]
    most = max((m for m in some if m.emit == "obj"), key=each)
    held = not any(map(is_above, some))
    unequal = sum(m.unequal for m in some)
    words = f"{most.made.words}: {most.kernels[-1]}"
    limit = f"{ceiling(kind, core):.1f}"
    return kind, core, *figures, limit, held, unequal, words


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
                        f"{kind:22} {seed} {core[7:]:3} {emit:3} {each(m):7.2f}{flag} "
                        f"est {far:.2f} bad {m.unequal} {m.made.words} "
                        f"{','.join(m.kernels)}",
                        flush=True,
                    )
    return 0


CEILINGS: dict[str, tuple[float, float]] = dict.fromkeys(KINDS, (99.0, 99.0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
