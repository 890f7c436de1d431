"""Cycles of an inference by estimate, from the instructions that a report estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybuild.boards.simulators.timings import TIMINGS

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

# cycles for each instruction that a report estimates, of MLPerf Tiny's int8 nets on
# each core: by the timings that are published of M0, M3, M4 (the M33 has the M4's),
# else one for each instruction that was counted; of RISC-V's vectors as many as it has
# registers of 128 bits, which is 2.2 to 2.8 times as many
PACE = {
    "cortex-m0": 1.48, "cortex-m3": 1.83, "cortex-m4": 1.39, "cortex-m33": 1.39,
    "cortex-m7": 1.04, "cortex-m55": 1.06, "rv32imc": 1.10, "xtensa": 1.76,
    "esp32": 1.76, "rv32ec": 17.6,
    **dict.fromkeys(("rv32imcv", "rv32imc_zve32x", "rv64gcv"), 2.5),
    "generic": 18.0,  # an ATmega2560, counted by simavr: of digits and a CNN
}  # fmt: skip
FLOAT_PACE = {"generic": 54.0}  # likewise, of that CNN in floats
_ROUGH = 1.0


def cycles_on(target: str, library: Library) -> int:
    """The estimated cycles of an inference from begin to end, without the flash's wait
    states.

    library  of that target, or of another that gets the same plan
    """
    cycles = 0.0
    for row in library.report.kernels:
        pace = PACE.get(target, _ROUGH)
        if library.plan.graph.tensor(row.output).dtype.name == "FLOAT32":
            pace = FLOAT_PACE.get(target, pace)
        cycles += pace * row.instructions
    use = library.report.cores
    return round(cycles * (use.together / use.alone if use and use.sliced else 1.0))


def shown(core: str, cycles: int) -> str:
    """Return the cycles as text, with ~ if no timings of the core are published."""
    return f"{cycles:,}" if core in TIMINGS else f"~{cycles:,}"


WHAT = (
    "estimate, from published timings of Cortex-M0, M0+, M3, M4 and M33; ~: a rough "
    "one,\n       for no timings are published"
)
