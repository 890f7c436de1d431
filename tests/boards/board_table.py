"""Writes the tables of docs/boards.md from the files of boards and chips: what each
has, how it is simulated, and with what its facts were compared."""

from __future__ import annotations

from pybuild.boards.simulators.stand_ins import simulation
from pybuild.install import boards
from pybuild.targets.board import Board, board_names, load_board
from pybuild.targets.chip import Chip, read_chip
from pybuild.targets.facts import Reader
from tests.toolchains import ROOT

PAGE = ROOT / "docs" / "boards.md"
HEAD = "## All boards"
OPENING = f"""\
{HEAD}

Written by `python -m tests.boards.board_table`; do not edit. *simulated*: QEMU has this
board, and with it the console. *core-simulated*: a simulator has its core; memories
are as large as the chip's, and programs talk through semihosting. *facts only*:
no simulator of its core is supported. Clock: the highest; start-up leaves the one
after reset.

| board | chip | cores | FPU | DSP | MHz | flash | RAM | further memories | |
| --- | --- | --- | --- | --- | ---: | ---: | ---: | --- | --- |
"""

SOURCES = """\

## Where the facts are from

Written by the same command. Each chip's file in `boards/soc/` names the datasheet, and
in `[compared]` the public text that was read beside it, fact by fact: repository and
path, or page. {whole} of {chips} files are compared whole, {known} of {facts} facts;
`fpu` and `dsp` count where the core leaves no choice. What the third column names rests
on the datasheet as remembered: read it there before you rely on it.

| chip | facts | not compared | compared with |
| --- | ---: | --- | --- |
"""


def chips() -> list[Chip]:
    """Every file of boards/soc, images of FPGAs too."""
    files = sorted(boards().glob("soc/*.toml"))
    return [read_chip(file, Reader()) for file in files]


def section() -> str:
    rows = [_row(load_board(name)) for name in board_names()]
    table = OPENING + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return table + _sources(chips())


def _sources(found: list[Chip]) -> str:
    facts = sum(len(chip.stated) for chip in found)
    unknown = sum(len(chip.unverified) for chip in found)
    opening = SOURCES.format(
        whole=sum(not chip.unverified for chip in found), chips=len(found),
        known=facts - unknown, facts=facts,
    )  # fmt: skip
    rows = [
        f"| `{chip.name}` | {len(chip.stated)} | {', '.join(chip.unverified) or '-'} "
        f"| {'; '.join(chip.compared)} |\n"
        for chip in found
    ]
    return opening + "".join(rows)


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
