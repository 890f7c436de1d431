"""QEMU's machine of a board, and what of QEMU's options a board.toml may give.

A board.toml comes from anywhere. Options of QEMU read and write any file of the user's
(`-chardev file,path=...`, `-machine ...,dumpdtb=...`), so what is not known to be
harmless is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pybuild.files.shape import shown
from pybuild.targets.facts import Reader

SYSTEMS = ("arm", "riscv32", "xtensa", "avr")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# option -> its values; none has a file in it
_OPTIONS = {
    "-accel": re.compile(r"tcg(,thread=(single|multi))?"),
    "-bios": re.compile(r"none"),
    "-cpu": re.compile(r"[\w.-]+(,[\w.-]+=[\w.]+)*"),
    "-icount": re.compile(r"(shift=)?(auto|\d+)"),
    "-m": re.compile(r"\d+[KMG]?"),
    "-smp": re.compile(r"\d+"),
}


def read_machine(
    own: dict[str, Any], file: Path, reader: Reader
) -> tuple[str, str, tuple[str, ...]]:
    """QEMU's system, its machine and further options; many boards are none."""
    if "qemu" not in own:
        return "", "", ()
    qemu = reader.table(own, "qemu", file)
    system = reader.one_of(qemu, "system", file, SYSTEMS)
    machine = reader.text(qemu, "machine", file)
    if machine and not _NAME.fullmatch(machine):
        hint = "the name alone, as `qemu-system-arm -M help` has it"
        reader.wrong(file, f"'machine' is {shown(machine)}, no name", hint)
    arguments = reader.texts(qemu, "arguments", file)
    _check(arguments, file, reader)
    return system, machine, arguments


def _check(arguments: tuple[str, ...], file: Path, reader: Reader) -> None:
    """Options and values in turn, each a known one."""
    for option, value in zip(arguments[::2], (*arguments[1::2], ""), strict=False):
        known = _OPTIONS.get(option)
        if known is None:
            hint = f"one of {', '.join(_OPTIONS)}, each with its value"
            what = f"'arguments' has {shown(option)}, which is not passed on to QEMU"
            reader.wrong(file, what, hint)
        elif not known.fullmatch(value):
            what = f"'arguments' has {shown(value)} for {option}"
            reader.wrong(file, what, f"it takes {known.pattern}")
