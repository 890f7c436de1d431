"""The names that people type for a processor: of kernels, cores, chips and families.

Each stands for a core, which has flags, and by it for a target, which has kernels.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

from pybuild.errors import BuildError, close_to
from pybuild.install import boards
from pybuild.targets.boxes import nearest_board
from pybuild.targets.core import CORES, Core
from pybuild.targets.target import TARGETS, Target

# other names of a core: its vendor's, and those of chips that no file is about
OTHERS = {
    "cortex-m0+": "cortex-m0plus",
    "cortex-m1": "cortex-m0",
    "cortex-m4f": "cortex-m4",
    "cortex-m35p": "cortex-m33",
    "rv32imafc": "rv32imac",
    "hazard3": "rv32imac_zba_zbb",
    "lx106": "xtensa-lx106",
    "esp8266": "xtensa-lx106",
    "xtensa-lx6": "esp32",
    "xtensa-lx7": "esp32s3",
}
_ISA = re.compile(r"rv32([iegmafdcv]+)((?:_z[a-z0-9]+)*)")
_VECTORS = frozenset({"v", "zve32x"})


def core_of(name: object) -> Core | None:
    """The core of a name, if it is one of a core or of a chip."""
    known = OTHERS.get(str(name), str(name))
    if known not in CORES and known not in TARGETS:
        known = chips().get(known, known)
    return CORES.get(known) or _nearest_isa(known)


@functools.cache
def _nearest_isa(name: str) -> Core | None:
    """The core that has most of the instructions in a RISC-V `-march`, and no others:
    what it lacks of them is not used."""
    given = _extensions(name)
    if not given:
        return None
    known = ((_extensions(n), core) for n, core in CORES.items())
    fits = [(own, core) for own, core in known if own and own <= given]
    return max(fits, key=_worth)[1] if fits else None


def _worth(found: tuple[frozenset[str], Core]) -> tuple[int, int]:
    return len(found[0] & _VECTORS), len(found[0])


def _extensions(isa: str) -> frozenset[str]:
    """The letters and the names of what a RISC-V of 32 bits has; none: it is not the
    name of one. Registers of vectors that may have fewer than 128 bits do not count."""
    found = _ISA.fullmatch(isa)
    if found is None or found[1][0] not in "ieg":
        return frozenset()
    words = {word for word in found[2].split("_") if word}
    letters = {*found[1].replace("g", "imafd"), *("c" if "zca" in words else "")}
    wide = any(int(n) >= 128 for n in re.findall(r"zvl(\d+)b", found[2]))
    if isa not in CORES and not wide:
        words -= _VECTORS
    return frozenset(letters | words)


@functools.cache
def chips() -> dict[str, str]:
    """Each chip of boards/soc, and its first core."""
    return {file.stem: _cpu(file) for file in sorted(boards().glob("soc/*.toml"))}


def _cpu(file: Path) -> str:
    """Only the line that is asked for: all files are read for one unknown name."""
    return str(tomllib.loads(file.read_text(encoding="utf-8")).get("cpu", ""))


def known_names() -> tuple[str, ...]:
    """The names of targets for kernels, then of cores."""
    return tuple(dict.fromkeys((*TARGETS, *CORES, *OTHERS)))


def is_known(name: object) -> bool:
    return name in TARGETS or core_of(name) is not None


def hint_for(name: str) -> str:
    """All there is, for a name that is not known."""
    names = known_names()
    if any(file.parent.name == name for file in boards().glob("*/board.toml")):
        core = _core_of_board(name)
        return f"{core}, the core of that board; check, bench and run take --on {name}"
    near = nearest_board(name)
    if near:
        core = _core_of_board(near)
        return f"{core}, the core of the nearest board of `crt boards`, {near}"
    close = close_to(name, (*names, *chips()))
    meant = f"did you mean '{close}'? " if close else ""
    return f"{meant}one of {', '.join(names)}; or a chip of `crt fit`"


def _core_of_board(name: str) -> str:
    text = (boards() / name / "board.toml").read_text(encoding="utf-8")
    return chips()[str(tomllib.loads(text)["soc"])]


def core_named(name: str) -> Core:
    """The core of that name.

    Errors  BuildError listing the known ones
    """
    core = core_of(name)
    if core is None:
        raise BuildError("--target", f"'{name}' is not a core", hint_for(name))
    return core


def target_named(name: str) -> Target:
    """The target of that name, or of the core that it stands for.

    Errors  BuildError listing the known ones
    """
    core = None if name in TARGETS else core_of(name)
    if core is None and name not in TARGETS:
        raise BuildError("--target", f"'{name}' is not known", hint_for(name))
    return TARGETS[core.target if core else name]
