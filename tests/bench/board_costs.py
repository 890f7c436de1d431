"""What an inference costs on each core, as a table: instructions, RAM and flash by
model, core and back end, counted on simulated boards. Knows what a user knows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from pybuild.boards.device import Device, open_device
from pybuild.library import Library
from tests.bench.costs import Row, Table, built, model
from tests.boards.devices import CORES
from tests.figures.counted import Counted, counted, or_refused
from tests.figures.store import Ready, store
from tests.graphs.real_models import NETWORKS

# name -> tool chain, what the board gets
BACKENDS = {"C, gcc": ("gcc", "c"), "C, zig": ("zig", "c"), "LLVM": ("gcc", "obj")}
# TensorFlow Lite Micro 90b983c2 with CMSIS-NN 4ab83cc3, core -O2, CMSIS-NN -O3, gcc
# 12.2, counted on QEMU 7.2 in the same way; on RISC-V its reference kernels
THEIRS = {
    "kws": {"cortex-m4": 7_845_384, "cortex-m7": 7_761_339, "cortex-m55": 1_785_411,
            "rv32imc": 44_312_391},
    "vww": {"cortex-m4": 24_720_536, "cortex-m7": 24_483_996,
            "cortex-m55": 6_433_751, "rv32imc": 109_926_642},
    "ic": {"cortex-m4": 29_872_574, "cortex-m7": 29_934_923, "cortex-m55": 4_809_582,
           "rv32imc": 125_528_838},
    "ad": {"cortex-m4": 582_359, "cortex-m7": 582_669, "cortex-m55": 150_002,
           "rv32imc": 2_480_182},
}  # fmt: skip
# bytes: their arena on a Cortex-M4, and code with read-only data but without the model
THEIR_RAM = {"kws": 22_820, "vww": 100_708, "ic": 54_996, "ad": 2_580}
THEIR_CODE = {"kws": 46_680, "vww": 46_680, "ic": 43_848, "ad": 22_424}
# bytes of X_int8.tflite, which they keep in flash as it is
THEIR_FILE = {"kws": 53_936, "vww": 333_288, "ic": 98_496, "ad": 276_976}

# onnx2c, gcc 12.2 -O3, the same networks in float32, and what was asked of them
ONNX2C = {"kws": 19_923_920, "vww": 54_082_560, "ic": 116_243_040, "ad": 1_341_120}
ASKED = {"kws": 0.6, "vww": 0.6, "ic": 0.4, "ad": 0.8}
# asked for, millions of instructions: of the best back end that is named; on a
# Cortex-M4 gcc may take 1.35 times as many
INSTRUCTIONS = {
    "cortex-m4": ({"kws": 3.6, "vww": 6.5, "ic": 13, "ad": 0.33}, ("C, zig", "LLVM")),
    "cortex-m3": ({"kws": 11, "vww": 20, "ic": 45, "ad": 0.9}, BACKENDS),
    "cortex-m0": ({"kws": 15.5, "vww": 28, "ic": 63, "ad": 1.3}, BACKENDS),
    "rv32imc": ({"kws": 11, "vww": 20, "ic": 45, "ad": 0.9}, BACKENDS),
}
M55 = {
    "LLVM": {"kws": 0.9, "vww": 1.6, "ic": 3, "ad": 0.08},
    "C, gcc": {"kws": 1.3, "vww": 3, "ic": 4, "ad": 0.12},
}
# bytes of code on a Cortex-M4
CODE = {"kws": 10_240, "vww": 12_288, "ic": 10_240, "ad": 5_120}
SMALLEST = 6_144
PLANS = ("rows", "whole")
# millions of cycles on an STM32L4R5 at 120 MHz, as MLPerf Tiny published them
# (milliseconds times 120,000), and instructions of the second as in THEIRS
SILICON = {
    "best of X-CUBE-AI 9.0 and Plumerai 2023.05": (5.2, 10.7, 19.8, 0.49),
    "microTVM with CMSIS-NN": (12.0, 36.1, 46.8, 1.03),
}
MICROTVM = (8.44, 24.7, 29.8, 0.58)
# instructions asked for with --optimise speed
SPEED, FASTEST = "cortex-m4", {"ic": 10_000_000}
FLOATING = ("cortex-m4", "cortex-m7", "cortex-m33")
# file of a network, core, back end, plan, optimise
Way = tuple[str, str, str, str, str]


def _ready(file: str, core: str, name: str, plan: str, optimise: str) -> Ready:
    chain, emit = BACKENDS[name]
    level = "size" if optimise == "size" else "balanced"  # of the C compiler

    def build() -> tuple[Device, Library]:
        device = open_device(CORES[core], chain, "qemu", core, level)
        how = {"emit": emit, "plan": plan, "optimise": optimise}
        return device, built(model(file), target=device.core.target, **how)

    return or_refused(build)


def costs_of(ways: Iterable[Way]) -> dict[Way, Counted]:
    """What an inference takes by each of the ways."""
    named = {f"{__name__}: {', '.join(way)}": way for way in ways}
    found = store().all(_ready, named)
    return {way: counted(found[what]) for what, way in named.items()}


def floats_on_boards() -> Table:
    each = list(itertools.product(NETWORKS, FLOATING, BACKENDS))
    seen = costs_of((f"{n}_f32.onnx", c, b, "rows", "balanced") for n, c, b in each)
    rows = [
        (*one, *_float_figures(one[0], cost))
        for one, cost in zip(each, seen.values(), strict=True)
    ]
    says = (
        "One warm inference of X_f32.onnx on cores with a floating-point unit, counted "
        "likewise. Cycles: estimated from the core's published timings. onnx2c: "
        "counted on a Cortex-M4, `-O3`; a ratio below 1 is fewer instructions than its."
    )
    columns = (
        "model", "core", "back end", "instructions", "per MAC", "cycles", "RAM", "code",
        "onnx2c", "ratio", "at most", "held",
    )  # fmt: skip
    return Table("float32 on boards", says, columns, tuple(rows))


def _float_figures(network: str, cost: Counted) -> Row:
    ratio = cost.instructions / ONNX2C[network]
    return (
        cost.instructions,
        f"{cost.instructions / cost.macs:.2f}",
        cost.cycles or "",
        cost.ram,
        cost.runtime + cost.code,
        ONNX2C[network],
        f"{ratio:.2f}",
        ASKED[network],
        ratio <= ASKED[network],
    )


def on_boards() -> Table:
    rows = tuple(_on_every_core())
    says = (
        "One warm inference of X_int8.tflite, counted to the instruction: `crt bench X "
        "--on BOARD --target CORE --toolchain T --emit E`. Cortex-M0's code runs on "
        "mps2-an385. RAM: arena, instance and measured stack. Code: crt, kernels and "
        "step tables; flash: with weights. TFLM: TensorFlow Lite Micro with "
        "CMSIS-NN, on RISC-V with its reference kernels; a ratio below 1 is fewer "
        "instructions than theirs. Its arena, on a Cortex-M4, and its code: "
        + "; ".join(f"{n} {THEIR_RAM[n]:,} and {THEIR_CODE[n]:,}" for n in NETWORKS)
        + "."
    )
    columns = (
        "model", "core", "back end", "instructions", "per MAC", "RAM", "stack", "code",
        "flash", "TFLM", "ratio",
    )  # fmt: skip
    return Table("On boards", says, columns, rows)


def asked_of_boards() -> Table:
    """What `on_boards` has, beside what was asked for."""
    seen = {tuple(r[:3]): (_number(r[3]), _number(r[7])) for r in on_boards().rows}
    rows: list[Row] = []
    for network in NETWORKS:
        for core, (most, names) in INSTRUCTIONS.items():
            best = min((seen[network, core, name][0], name) for name in names)
            code = CODE[network] if core == "cortex-m4" else ""
            rows.append(_asked(seen, (network, core, best[1]), most[network], code))
        least = min(seen[network, "cortex-m4", n][0] for n in ("C, zig", "LLVM"))
        gcc = (network, "cortex-m4", "C, gcc")
        rows.append(_asked(seen, gcc, 1.35 * least / 1e6, ""))
        for name, figures in M55.items():
            where = (network, "cortex-m55", name)
            rows.append(_asked(seen, where, figures[network], ""))
    says = (
        "Of the table above, the best back end of each core, in millions of "
        "instructions; gcc's on a Cortex-M4 beside 1.35 times the best."
    )
    columns = (
        "model", "core", "back end", "instructions", "asked", "code", "code asked",
        "held",
    )  # fmt: skip
    return Table("What was asked of boards", says, columns, tuple(rows))


def _number(cell: object) -> int:
    """A model that does not fit a board has no figures there."""
    return cell if isinstance(cell, int) else 0


def _asked(
    seen: Mapping[tuple[object, ...], tuple[int, int]],
    where: tuple[str, str, str],
    most: float,
    code_most: int | str,
) -> Row:
    instructions, code = seen[where]
    fits = not isinstance(code_most, int) or code <= code_most
    held = 0 < instructions <= most * 1e6 and fits
    return (*where, f"{instructions / 1e6:.3f}", f"{most:.3g}", code, code_most, held)


def fastest_on_boards() -> Table:
    each = list(itertools.product(NETWORKS, BACKENDS))
    seen = costs_of(_of(n, SPEED, name, optimise="speed") for n, name in each)
    rows = []
    for (network, name), cost in zip(each, seen.values(), strict=True):
        most = FASTEST.get(network)
        held = "" if most is None else cost.instructions <= most
        figures = _figures(network, SPEED, cost)
        rows.append((network, name, *figures, cost.cycles or "", most or "", held))
    says = (
        f"As above, on a {SPEED}, with `--optimise speed`: it spends RAM and flash "
        "where that saves instructions. Cycles: estimated from the core's published "
        "timings."
    )
    columns = (
        "model", "back end", "instructions", "per MAC", "RAM", "stack", "code", "flash",
        "TFLM", "ratio", "cycles", "at most", "held",
    )  # fmt: skip
    return Table("With --optimise speed", says, columns, tuple(rows))


def smallest_on_boards() -> Table:
    each = list(itertools.product(NETWORKS, PLANS, BACKENDS))
    ways = [
        _of(network, "cortex-m4", name, plan, optimise)
        for network, plan, name in each
        for optimise in ("balanced", "size")
    ]
    seen, rows = list(costs_of(ways).values()), []
    for one, before, small in zip(each, seen[::2], seen[1::2], strict=True):
        parts = (small.runtime, small.code, small.tables)
        times = f"{small.instructions / before.instructions:.2f}"
        rows.append((*one, small.arena, sum(parts), *parts, small.instructions, times))
    says = (
        "X_int8.tflite on a Cortex-M4, `--optimise size`, by rows (the default) and "
        "with `--plan whole`. Code: crt, kernels and step tables, in bytes: at most "
        f"{SMALLEST:,} were asked of the best, at no more than 1.5 times the "
        "instructions of `balanced`, same plan."
    )
    columns = (
        "model", "plan", "back end", "arena", "code", "crt", "kernels", "tables",
        "instructions", "times",
    )  # fmt: skip
    return Table("With --optimise size", says, columns, tuple(rows))


def by_rows_on_boards() -> Table:
    """What layers in lock step cost beside whole tensors."""
    ways = [_of(n, "cortex-m4", "C, gcc", p) for n in NETWORKS for p in PLANS]
    seen, rows = list(costs_of(ways).values()), []
    for network, by_rows, whole in zip(NETWORKS, seen[::2], seen[1::2], strict=True):
        ratio = by_rows.instructions / whole.instructions
        counts = (whole.arena, by_rows.arena, whole.instructions, by_rows.instructions)
        rows.append((network, *counts, f"{ratio:.2f}"))
    says = (
        "X_int8.tflite on a Cortex-M4, C by gcc: arena and instructions with `--plan "
        "whole` and with `--plan rows`, the default."
    )
    columns = (
        "model", "whole: arena", "rows: arena", "whole: instructions",
        "rows: instructions", "ratio",
    )  # fmt: skip
    return Table("Rows beside whole tensors", says, columns, tuple(rows))


def beside_silicon() -> Table:
    rows: list[Row] = []
    for name in ("C, gcc", "C, zig"):
        ways = [_of(network, "cortex-m4", name) for network in NETWORKS]
        seen = list(costs_of(ways).values())
        cycles = [r.cycles or 0 for r in seen]
        each = [n / r.instructions for n, r in zip(cycles, seen, strict=True)]
        rows.append((f"ours, {name}, estimated", *(f"{n / 1e6:.2f}" for n in cycles)))
        rows.append(("for each instruction", *(f"{n:.2f}" for n in each)))
    for name, figures in SILICON.items():
        rows.append((f"{name}, measured", *map(str, figures)))
    each = [a / b for a, b in zip(figures, MICROTVM, strict=True)]
    rows.append(("for each instruction", *(f"{n:.2f}" for n in each)))
    says = (
        "Millions of cycles of one inference of X_int8.tflite on a Cortex-M4. "
        "Estimated: `crt bench X --on mps2-an386` (docs/cycles.md). Measured: results "
        "that MLPerf Tiny published, on an STM32L4R5 at 120 MHz."
    )
    return Table("Beside silicon", says, ("", *NETWORKS), tuple(rows))


def _of(
    network: str, core: str, name: str, plan: str = "rows", optimise: str = "balanced"
) -> Way:
    return f"{network}_int8.tflite", core, name, plan, optimise


def _on_every_core() -> Iterator[Row]:
    each = list(itertools.product(NETWORKS, CORES, BACKENDS))
    seen = costs_of(_of(*one) for one in each)
    for one, cost in zip(each, seen.values(), strict=True):
        if cost.refused:
            yield (*one, cost.refused, *7 * [""])
        else:
            yield (*one, *_figures(one[0], one[1], cost))


def _figures(network: str, core: str, cost: Counted) -> Row:
    theirs = THEIRS[network].get(core)
    return (
        cost.instructions,
        f"{cost.instructions / cost.macs:.2f}",
        cost.ram,
        cost.stack,
        cost.all_code,
        cost.all_code + cost.weights,
        theirs or "",
        f"{cost.instructions / theirs:.2f}" if theirs else "",
    )
