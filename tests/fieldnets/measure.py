"""What a net of the field takes: counted and compared on emulated cores, planned for
every core, compared tensor by tensor on this machine."""

from __future__ import annotations

import functools
import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import pybuild
from pybuild.boards.bench import bench_program
from pybuild.boards.device import program_of, run_program
from pybuild.boards.firmware import build as firmware
from pybuild.dtype import Array
from pybuild.verify.check import CheckResult, check
from tests.fieldnets.nets import net
from tests.figures import tools
from tests.figures.counted import program_key
from tests.figures.store import Facts, Ready
from tests.ops.litert import run_litert
from tests.perf.measure import EMITS, device

BACKENDS = ("c", "llvm")
CORES = ("cortex-m4", "cortex-m55")
# every core that has kernels of its own, and the plan that all are held to
EVERY = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m3", "rv32imc",
         "cortex-m0")  # fmt: skip
RAM_RATIO = 1.1
_script = firmware.linker_script


@dataclass(frozen=True)
class OnCore:
    """One inference of a net by one back end; unequal: values of its outputs that are
    not LiteRT's."""

    name: str
    core: str
    emit: str
    instructions: int
    unequal: int

    @property
    def per_mac(self) -> float:
        return self.instructions / net(self.name).macs

    @property
    def aim(self) -> float | None:
        """Instructions for each MAC that are asked for; of a Cortex-M55 by LLVM."""
        aims = net(self.name).aims
        if aims is None or (self.core, self.emit) == ("cortex-m55", "c"):
            return None
        return aims[CORES.index(self.core)]


@functools.cache
def built(name: str, target: str, **options: str) -> pybuild.Library:
    return loaded(name).build(name="net", target=target, **options)


@functools.cache
def loaded(name: str) -> pybuild.Model:
    return pybuild.load(net(name).file)


@functools.cache
def given(name: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """An input to both ends of its type, and every tensor by LiteRT."""
    graph = loaded(name).graph
    chance = np.random.default_rng(5)
    inputs: dict[str, Array] = {
        n: chance.integers(-128, 128, graph.tensor(n).shape).astype(np.int8)
        for n in graph.inputs
    }
    (wanted,) = run_litert(net(name).file, [inputs])
    return inputs, wanted


def _weights_apart(board: Any, *others: Any) -> str:
    """The linker script with weights in the board's other memory, where that is: some
    nets have more of them than the flash of mps3-an547 holds."""
    text: str = _script(board, *others)
    if "sram" not in board.memories:
        return text
    place = re.compile(r"(\.weights :\n +\{.*?\} >) FLASH", re.DOTALL)
    return place.sub(r"\1 SRAM", text, count=1)


def on_core(name: str, core: str, emit: str) -> OnCore:
    """One inference, whatever is kept."""
    return OnCore(name, core, emit, **ready(name, core, emit).measure())


def ready(name: str, core: str, emit: str) -> Ready:
    """Its program; counted, and compared with LiteRT, when that is asked for."""
    library, on = built(name, core, emit=emit), device(core)
    with mock.patch.object(firmware, "linker_script", _weights_apart):
        program = program_of(on, library)

    def measure() -> Facts:
        inputs, wanted = given(name)
        instructions = bench_program(on, program).instructions
        (found,) = run_program(on, program, [inputs])
        outputs = library.plan.graph.outputs
        unequal = sum(int((found[n] != wanted[n]).sum()) for n in outputs)
        return {"instructions": instructions, "unequal": unequal}

    told = hashlib.sha256(net(name).file).hexdigest()
    key = program_key(on, program, told, tools.versions()["ai-edge-litert"])
    return Ready(key, {}, measure)


def ram(name: str, target: str, **options: str) -> int:
    """Bytes of the arena and the instance."""
    report = built(name, target, **options).report
    return report.ram.arena + report.ram.instance


def ram_of_cores(name: str) -> dict[str, int]:
    """By rows, on every core; "generic" is what it is held to."""
    return {core: ram(name, core) for core in ("generic", *EVERY)}


def checked(name: str, count: int, floats: bool = False) -> CheckResult:
    """Every tensor of the plan that ships by both back ends of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.tflite"
        path.write_bytes(net(name, floats).file)
        library = pybuild.load(path).build()
        return check(path, library, BACKENDS, "litert", count, per_layer=True)


__all__ = ["BACKENDS", "CORES", "EMITS", "EVERY", "OnCore", "checked", "on_core"]
