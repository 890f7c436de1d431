"""Instructions, cycles and tokens a second of a token, by its position; RAM and flash.

python measure.py [BOARD [MODEL]]   by default pico2 and stories.pt2; counted by a
simulator; cycles by estimate (docs/cycles.md); tokens a second at 150 MHz
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from tell import HERE, WINDOW, load

from pybuild.boards.bench import count_plan
from pybuild.boards.device import Device, open_device, pack_inputs, program_of
from pybuild.boards.firmware.fit import Program
from pybuild.boards.simulators.simulator import must_succeed

AT = (0, 64, 128, WINDOW - 1)
HZ = 150e6


def costs(device: Device, program: Program, at: int) -> tuple[int, int]:
    """Instructions and cycles of a token at a position."""
    firmware, plan = program.firmware, program.library.plan
    given = {"token": np.array([262]), "at": np.array([at])}
    counting = count_plan(firmware, len(plan.steps), bool(plan.pushed))
    files = {"crt.in": pack_inputs(plan, [given])}
    counts = device.simulator.run(firmware, files, counting)
    found = must_succeed(counts, firmware).counts
    assert found is not None and found.cycles is not None
    return found.total, sum(found.cycles)


def main() -> None:
    given = sys.argv[1:]
    board, path = [*given, *("pico2", str(HERE / "stories.pt2"))[len(given) :]]
    device = open_device(board)
    library = load(Path(path)).build(target=device.core.name)
    program = program_of(device, library)
    for at in AT:
        instructions, cycles = costs(device, program, at)
        rate = HZ / cycles
        print(f"{at:3} {instructions:9,} {cycles:9,} {rate:6.1f} tokens a second")
    flash = library.report.flash
    print(f"RAM {library.plan.arena_bytes:,}, weights {flash.weights:,} bytes")


if __name__ == "__main__":
    main()
