"""The tools on this machine to build for each board and to run it, and those that are
missing.

Whether QEMU counts is found by starting it.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from pybuild.boards.device import missing_simulator
from pybuild.boards.simulators.qemu import find_qemu
from pybuild.boards.simulators.stand_ins import simulation
from pybuild.boards.simulators.unicorn import find_unicorn
from pybuild.targets.board import Board, board_names, load_board
from pybuild.targets.toolchain import NAMES, find_toolchain, missing_compilers


def board_facts(name: str | None = None) -> list[dict[str, Any]]:
    """The facts of one board, or of all that come with pybuild."""
    names = board_names() if name is None else (name,)
    return [_facts(load_board(one)) for one in names]


def _facts(board: Board) -> dict[str, Any]:
    arch, chip = board.core.arch, board.facts
    kind = simulation(board)
    tools = [t for t in (find_toolchain(kind, arch) for kind in NAMES) if t]
    qemu, unicorn = find_qemu(board), find_unicorn(board)
    machines = [s for s in (qemu, unicorn) if s]
    missing = []
    if not tools:
        missing.append(f"a compiler: {missing_compilers(arch)}")
    if kind == "facts only":
        missing.append("a simulator: none is supported for this core")
    elif not machines:
        hints = [missing_simulator(s, board) for s in ("qemu", "unicorn")]
        missing.append(f"a simulator: {' or '.join(filter(None, hints))}")
    elif board.second is not None and qemu is None:
        hint = missing_simulator("qemu", board, both=True)
        missing.append(f"a simulator of both cores: {hint}")
    if machines and importlib.util.find_spec("elftools") is None:
        missing.append("a reader of programs: pip install pyelftools")
    why = qemu.cannot_count if qemu else ""
    if why and not unicorn:
        other = missing_simulator("unicorn", board)
        missing.append(f"a simulator that counts: {other or 'another QEMU'}")
    return {
        "name": board.name,
        "title": board.title,
        "cpu": board.core.name,
        "second": board.second.name if board.second else None,
        "simulation": kind,
        "cores": chip.cores,
        "hz": chip.hz,
        "fpu": chip.fpu,
        "dsp": chip.dsp,
        "flash": board.flash.size,
        "ram": board.ram.size,
        "memories": {name: m.size for name, m in board.memories.items()},
        "source": chip.source,
        "note": chip.note,
        "program": board.flash_command,
        "toolchains": [{"name": t.name, "version": t.version} for t in tools],
        "simulators": [machine.name for machine in machines],
        "counts": [m.name for m in machines if not (m is qemu and why)],
        "why": why and f"{qemu.name if qemu else ''} cannot count: {why}",
        "missing": missing,
    }
