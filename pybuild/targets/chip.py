"""Chips as boards/soc describes them: facts of a datasheet, which the file names.

Knows no board, no console and no simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError
from pybuild.files.shape import shown
from pybuild.install import boards
from pybuild.records import dataclass
from pybuild.targets.core import CORES, Core
from pybuild.targets.facts import Memory, Reader

FPUS = ("none", "single", "double")
# what a file may state; FIXED: what its core leaves no choice about
FACTS = ("cpu", "cores", "hz", "start_hz", "wait_states", "flash", "ram", "fpu", "dsp",
         "energy")  # fmt: skip
FIXED = {
    "cortex-m0": ("fpu", "dsp"), "cortex-m0plus": ("fpu", "dsp"),
    "cortex-m3": ("fpu", "dsp"), "cortex-m4": ("dsp",), "cortex-m7": ("dsp",),
    "rv64gcv": ("fpu", "dsp"),
    "xtensa-lx106": ("fpu", "dsp"), "esp32": ("dsp",), "esp32s3": ("dsp",),
}  # fmt: skip
_BARE = ("riscv", "avr")  # none of these cores here has a unit for floats
STARTERS = ("sse200",)  # of second cores, as boards/common knows them
SIMULATED = "simulated"  # by the simulator, where no register of the chip does
HARTS = "harts"  # of a machine of QEMU that stands in, which all begin at once


@dataclass(frozen=True)
class Chip:
    """One chip, or an image of an FPGA.

    hz        its highest clock; start_hz: the one that it has after reset
    memories  besides `ram`, by name: closely coupled, or outside the chip
    cores     that run programs; beside: the second, where it is another one
    second    a further core that sees the same memory, and that boards/common can
              start; starter: in which way
    charge    microamperes for each MHz while it computes, at `volts`; 0: not given
    wait_states  of its flash at its highest clock, where no cache helps; None: no
              source has them
    vectors   where the core finds its vector table after reset, if not where flash
              begins
    image     it is not a chip that can be bought
    source    where the facts are from; note: what else a user must know
    stated    the facts that its file has, of FACTS, and "memory.NAME"
    compared  public text that was read beside the file -> the facts it confirms
    """

    name: str
    title: str
    core: Core
    hz: int
    start_hz: int
    flash: Memory
    ram: Memory
    memories: Mapping[str, Memory] = field(default_factory=dict)
    cores: int = 1
    beside: Core | None = None
    second: Core | None = None
    starter: str = ""
    fpu: str = "none"
    dsp: bool = False
    charge: float = 0.0
    volts: float = 0.0
    image: bool = False
    source: str = ""
    note: str = ""
    wait_states: int | None = None
    vectors: int | None = None
    stated: tuple[str, ...] = ()
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def unverified(self) -> tuple[str, ...]:
        """The facts that nobody has compared with a public text."""
        known = {fact for facts in self.compared.values() for fact in facts}
        if "cpu" in known:
            bare = ("fpu", "dsp") if self.core.arch in _BARE else ()
            known |= {*FIXED.get(self.core.name, bare)}
        return tuple(fact for fact in self.stated if fact not in known)

    @property
    def equal_cores(self) -> int:
        """How many cores can compute one run together."""
        return self.cores if self.beside is None else 1

    def microjoules(self, cycles: int) -> float | None:
        """The energy of a computation by one core; None if no source gives it."""
        return cycles * self.charge * self.volts * 1e-6 if self.charge else None


def read_chip(file: Path, reader: Reader) -> Chip:
    """Reads a chip; its errors become problems of the reader."""
    given = reader.toml(file)
    cpu = reader.one_of(given, "cpu", file, tuple(CORES))
    hz = reader.number(given, "hz", file)
    second, starter = _second(given, file, reader)
    charge, volts = _energy(given, file, reader)
    fpu = reader.one_of(given, "fpu", file, FPUS) if "fpu" in given else FPUS[0]
    return Chip(
        name=file.stem,
        title=reader.text(given, "title", file),
        core=CORES.get(cpu, CORES["cortex-m0"]),
        hz=hz,
        start_hz=reader.number(given, "start_hz", file) if "start_hz" in given else hz,
        flash=reader.memory(given, "flash", file),
        ram=reader.memory(given, "ram", file),
        memories=reader.memories(given, file),
        cores=reader.number(given, "cores", file) if "cores" in given else 1,
        beside=CORES.get(reader.text_or(given, "beside", file)),
        second=second,
        starter=starter,
        fpu=fpu,
        dsp=reader.flag(given, "dsp", file),
        charge=charge,
        volts=volts,
        image=reader.flag(given, "image", file),
        source=reader.text_or(given, "source", file),
        note=reader.text_or(given, "note", file),
        wait_states=_wait_states(given, file, reader),
        vectors=reader.number(given, "vectors", file) if "vectors" in given else None,
        stated=_stated(given),
        compared=_compared(given, file, reader),
    )


def _wait_states(given: dict[str, Any], file: Path, reader: Reader) -> int | None:
    known = "wait_states" in given
    return reader.number(given, "wait_states", file) if known else None


def _stated(given: dict[str, Any]) -> tuple[str, ...]:
    named = [fact for fact in FACTS if fact in given]
    more = given.get("memory", {})
    names = more if isinstance(more, dict) else ()
    return (*named, *(f"memory.{name}" for name in names))


def _compared(
    given: dict[str, Any], file: Path, reader: Reader
) -> dict[str, tuple[str, ...]]:
    """The table [compared]; each fact that it names must be in the file."""
    table = reader.table(given, "compared", file) if "compared" in given else {}
    stated, found = _stated(given), {}
    for text, facts in table.items():
        held = facts if isinstance(facts, list) else [facts]
        for fact in held:
            if fact not in stated:
                reader.wrong(file, f"'compared' names {shown(fact)}, which is not here")
        found[text] = tuple(map(str, held))
    return found


def _second(
    given: dict[str, Any], file: Path, reader: Reader
) -> tuple[Core | None, str]:
    """Most chips have none."""
    if "second" not in given:
        return None, ""
    table = reader.table(given, "second", file)
    cpu = reader.one_of(table, "cpu", file, tuple(CORES))
    return CORES.get(cpu), reader.one_of(table, "chip", file, STARTERS)


def _energy(given: dict[str, Any], file: Path, reader: Reader) -> tuple[float, float]:
    if "energy" not in given:
        return 0.0, 0.0
    table = reader.table(given, "energy", file)
    charge = reader.real(table, "microamperes_per_mhz", file)
    return charge, reader.real(table, "volts", file)


def all_chips() -> tuple[Chip, ...]:
    """The chips in boards/soc, by name.

    Errors  BuildError with every fault of the files
    """
    reader = Reader()
    files = sorted(boards().glob("soc/*.toml"))
    found = [read_chip(file, reader) for file in files]
    if reader.problems:
        raise BuildError.of(reader.problems)
    return tuple(chip for chip in found if not chip.image)
