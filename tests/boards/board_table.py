"""Writes the table of boards in docs/boards.md from their files: what each has, and
how it is simulated."""

from __future__ import annotations

from pybuild.boards.simulators.stand_ins import simulation
from pybuild.targets.board import Board, board_names, load_board
from tests.toolchains import ROOT

PAGE = ROOT / "docs" / "boards.md"
HEAD = "## All boards"
OPENING = f"""\
{HEAD}

Written by `python -m tests.boards.board_table`; do not edit. *simulated*: QEMU has this
board, and with it the console. *core-simulated*: a simulator has its core; memories
are as large as the chip's, and programs talk through semihosting. *facts only*:
pybuild drives no simulator of its core. Clock: the highest; start-up leaves the one
after reset.

| board | chip | cores | FPU | DSP | MHz | flash | RAM | further memories | |
| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- | --- |
"""


def section() -> str:
    rows = [_row(load_board(name)) for name in board_names()]
    return OPENING + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(board: Board) -> list[str]:
    chip = board.facts
    other = chip.beside or chip.second
    cores = f"{chip.core.name} and {other.name}" if other else chip.core.name
    if chip.cores > 1 and other is None:
        cores = f"{chip.cores} x {cores}"
    more = [f"{name} {_size(m.size)}" for name, m in chip.memories.items()]
    return [
        f"`{board.name}`", chip.title.partition(":")[0], cores, chip.fpu,
        "yes" if chip.dsp else "no", f"{chip.hz / 1e6:g}", _size(board.flash.size),
        _size(board.ram.size), ", ".join(more) or "-", simulation(board),
    ]  # fmt: skip


def _size(size: int) -> str:
    return f"{size >> 20}M" if size % (1 << 20) == 0 else f"{size >> 10}K"


def main() -> None:
    before = PAGE.read_text().partition(HEAD)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{section()}")


if __name__ == "__main__":
    main()
