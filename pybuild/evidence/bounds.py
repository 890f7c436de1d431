"""The facts of a build that hold for any input: indices and sums, from the plan; stack
and instructions, from the program for a board with its core, if one can be made here.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from pybuild.boards.simulators.unicorn import find_unicorn
from pybuild.bounds.layers import bounds
from pybuild.errors import BuildError
from pybuild.library import Library
from pybuild.targets.board import Board, board_names, load_board

Facts = dict[str, Any]


def layer_facts(library: Library) -> list[Facts]:
    """A layer a row: its loads and stores, its sums, tests of data."""
    rows = []
    for proof, limits in zip(bounds(library.plan), library.report.bounds, strict=True):
        row = asdict(limits)
        row |= {"accesses": proof.accesses, "open": list(proof.open)}
        rows.append({**row, "proven": proof.is_proven})
    return rows


def machine_facts(library: Library) -> Facts:
    """Stack and worst-case instructions of one inference; `reason`: why there are none.

    Of the largest board with the target's core that Unicorn runs.
    """
    target = library.targets[0].name
    if len(library.targets) > 1:
        return {"reason": "the model runs on several devices"}
    if library.tables.cores > 1:
        return {"reason": "several cores share the run, and their time has no bound"}
    if target == "generic":
        return {"reason": "the target is any CPU, so no instruction is known"}
    known = [load_board(name) for name in board_names()]
    having = [b for b in known if b.core.name == target and find_unicorn(b)]
    if not having:
        return {"reason": f"no board of {target} runs in Unicorn here"}
    board = max(having, key=_room)
    try:
        optimise = library.options.optimise
        device = open_device(board.name, "auto", "unicorn", "", optimise)
        bench = bench_on_board(device, library)
    except BuildError as error:
        return {"reason": "; ".join(str(problem) for problem in error.problems)}
    return {
        **device.to_json(),
        "emit": bench.emit,
        "instructions": bench.instructions,
        "worst": None if bench.worst is None else asdict(bench.worst),
        "stack": bench.ram.stack,
        "stack_bound": bench.ram.stack_bound,
        "stack_chain": [asdict(frame) for frame in bench.chain],
        "program_stack_bound": bench.ram.program,
    }


def _room(board: Board) -> tuple[int, str]:
    return board.flash.size + board.ram.size, board.name
