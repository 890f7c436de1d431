"""Nets of the field as tables: instructions beside what was asked for, RAM on every
core, seconds of builds. For `./dev bench`.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pybuild
from tests.bench.costs import Row, Table
from tests.bench.large_graphs import cost
from tests.fieldnets.measure import (
    CORES,
    EMITS,
    EVERY,
    RAM_RATIO,
    OnCore,
    checked,
    ram,
    ram_of_cores,
    ready,
)
from tests.fieldnets.nets import NETS, net
from tests.figures.store import store

SAMPLES = 2
# bytes of arena of a net that finds people, by core, as the input is
PERSON = "person_detect"
PERSON_RAM = (
    ("cortex-m4", "reuse", 22_500),
    ("cortex-m55", "reuse", 24_000),
    ("cortex-m4", "consumable", 15_500),
    ("cortex-m55", "consumable", 15_500),
    ("cortex-m4", "pushed", 12_500),
    ("cortex-m55", "pushed", 12_500),
    ("cortex-m4", "bound", 15_500),
    ("cortex-m55", "bound", 15_500),
)
SECONDS = 3.0  # of CPU, to build one of them for a Cortex-M4


def instructions() -> Table:
    each = list(itertools.product(NETS, CORES, EMITS))
    named = {f"{__name__}: {', '.join(way)}": way for way in each}
    found = store().all(ready, named)
    rows: list[Row] = []
    for what, way in named.items():
        seen = OnCore(*way, **found[what])
        most = seen.aim
        held: object = "" if most is None else seen.per_mac <= most
        shown = "" if most is None else f"{most:.2f}"
        how = "C, gcc" if seen.emit == "c" else "LLVM"
        counted = (seen.instructions, f"{seen.per_mac:.2f}", shown, held)
        macs = net(seen.name).macs
        rows.append((seen.name, macs, seen.core, how, *counted, seen.unequal))
    says = (
        "Architectures that people take, seeded weights normalised and calibrated on "
        "made images (`tests/fieldnets/nets.py`), as int8 .tflite. One inference of "
        "the default build, runtime included, for each multiplication that the net "
        "means; asked for where the issue asks, of a Cortex-M55 by LLVM. Unequal: "
        "values of the outputs that are not LiteRT's."
    )
    columns = (
        "net", "MACs", "core", "back end", "instructions", "per MAC", "asked", "held",
        "unequal",
    )  # fmt: skip
    return Table("Nets of the field", says, columns, tuple(rows))


def equal() -> Table:
    rows: list[Row] = []
    for name in NETS:
        seen = checked(name, SAMPLES)
        tallies = seen.backends.values()
        unequal = sum(t.unequal for t in tallies)
        elements = sum(t.elements for t in tallies)
        rows.append((name, seen.tensors, elements, unequal, not unequal))
    says = (
        f"Every tensor of the plan that ships, {SAMPLES} samples, by C and by LLVM on "
        "this machine, against LiteRT's reference kernels."
    )
    columns = ("net", "tensors", "elements", "unequal", "held")
    return Table("Nets of the field: equal values", says, columns, tuple(rows))


def rows_on_every_core() -> Table:
    rows: list[Row] = []
    for name in NETS:
        seen = ram_of_cores(name)
        most = max(seen[core] for core in EVERY) / seen["generic"]
        figures = (seen[core] for core in EVERY)
        whole = ram(name, "generic", plan="whole")
        worst = f"{most:.2f}"
        rows.append((name, whole, seen["generic"], *figures, worst, most <= RAM_RATIO))
    says = (
        "Arena and instance in bytes: whole tensors, then by rows, the default, for "
        "each core. Asked for: at most "
        f"{RAM_RATIO} times those of the generic plan."
    )
    columns = ("net", "whole", "generic", *EVERY, "worst", "held")
    return Table("Nets of the field: RAM", says, columns, tuple(rows))


def person_ram() -> Table:
    rows: list[Row] = []
    for floats in (False, True):
        for core, how, most in PERSON_RAM:
            have = person_arena(core, how, floats)
            ends = "float32" if floats else "int8"
            rows.append((PERSON, ends, core, how, have, most, have <= most))
    says = (
        "Arena in bytes of the net of TFLM's person_detect (MobileNetV1 0.25 of "
        "96x96x1): the input stays, may be written over as it is read, or is pushed "
        "row by row; also where it is float32 and quantised as it is read, which in "
        "the arena takes 36,864 bytes. Bound (`--lazy`): the input stays in the "
        "caller's memory, and the arena is beside it."
    )
    columns = ("net", "ends", "core", "input", "arena", "asked", "held")
    return Table("Nets of the field: finding people", says, columns, tuple(rows))


def person_arena(core: str, how: str, floats: bool = False) -> int:
    """Bytes; how: "reuse", "consumable", "pushed" or "bound"."""
    found = pybuild.load(net(PERSON, floats).file)
    push = found.graph.inputs if how == "pushed" else ()
    lazy = found.graph.inputs if how == "bound" else ()
    word = "reuse" if push or lazy else how
    library = found.build(name="net", target=core, push=push, lazy=lazy, input=word)
    return library.report.ram.arena


def seconds() -> Table:
    rows = [
        (name, *(f"{s:.2f}" for s in spent), spent[0] <= SECONDS)
        for name, spent in ((n, _spent(net(n).file)) for n in NETS)
    ]
    says = (
        f"CPU seconds of `crt build --target`, the whole process; {SECONDS:g} are "
        "asked for on a Cortex-M4, half on no core in particular."
    )
    columns = ("net", "cortex-m4", "generic", "held")
    return Table("Nets of the field: seconds to build", says, columns, tuple(rows))


def _spent(
    file: bytes, targets: Sequence[str] = ("cortex-m4", "generic")
) -> list[float]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.tflite"
        path.write_bytes(file)
        for target in targets:
            words = ("-m", "pybuild.cli", "build", str(path), "--target", target)
            found.append(cost(*words, "-o", f"{folder}/{target}")[0])
    return found
