"""Our C hooks in Unicorn's engines: instructions and cycles by step and core."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.firmware.worst import Trace
from pybuild.boards.simulators.count import (
    CountPlan,
    Counts,
    costs_of,
    counter_library,
    counts_of,
    plan_fields,
)
from pybuild.errors import BuildError

_MOST_STEPS = _MOST_JOBS = 4096  # of boards/host/count.h
_MOST_MEETINGS = 4


def _numbers(*names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, ctypes.c_uint64) for name in names)


class _Core(ctypes.Structure):
    """struct core of boards/host/count.h"""

    _fields_ = (
        *_numbers("step", "waits", "time", "of_runtime"),
        ("of_step", ctypes.c_uint64 * _MOST_STEPS),
        *_numbers("next", "single", "cycles_of_runtime"),
        ("cycles_of_step", ctypes.c_uint64 * _MOST_STEPS),
        ("looked", ctypes.c_uint64 * 3),
    )


class _Fields(ctypes.Structure):
    """struct count of boards/host/count.h"""

    _fields_ = (
        *_numbers(*CountPlan.__dataclass_fields__),
        *_numbers("on", "begun", "given", "taken", "done_at"),
        ("core", _Core * 2),
        ("job_at", ctypes.c_uint64 * _MOST_JOBS),
        ("job_step", ctypes.c_uint64 * _MOST_JOBS),
        ("said_at", ctypes.c_uint64 * _MOST_MEETINGS),
    )


class CostsOfCode(ctypes.Structure):
    """struct costs of boards/host/count.h"""

    _fields_ = (("of", ctypes.c_char_p), *_numbers("at", "bytes", "taken"))


class Count(ctypes.Structure):
    """struct unicorn_count of boards/host/unicorn_count.c"""

    _fields_ = (
        ("count", _Fields),
        ("code", ctypes.c_char_p),
        ("code_at", ctypes.c_uint64),
        ("code_bytes", ctypes.c_uint64),
        ("is_riscv", ctypes.c_uint64),
        ("costs", CostsOfCode),
        ("ran", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
    )


class OneCore(ctypes.Structure):
    """struct unicorn_core of boards/host/unicorn_count.c"""

    _fields_ = (("count", ctypes.c_void_p), ("k", ctypes.c_uint64))


class Counter:
    """Our C hooks in engines, each of which is a core of one program."""

    def __init__(
        self, engines: Sequence[Any], firmware: Firmware, plan: CountPlan
    ) -> None:
        self.library = ctypes.CDLL(str(counter_library("unicorn_count.c")))
        image = firmware.elf.image(firmware.board.flash.origin)
        self.state = Count(
            code=image,
            code_at=firmware.board.flash.origin,
            code_bytes=len(image),
            is_riscv=firmware.core.arch == "riscv",
        )
        self.known = costs_of(firmware)
        if self.known is not None:
            known = self.known
            self.state.costs = CostsOfCode(known.of, known.at, known.bytes, known.taken)
        halves = len(image) // 2 + 1
        self.ran, self.left = (np.zeros(halves, np.int64) for _ in range(2))
        self.state.ran, self.state.left = self.ran.ctypes.data, self.left.ctypes.data
        for name, value in plan_fields(plan).items():
            setattr(self.state.count, name, value)
        whole = ctypes.addressof(self.state)
        self.cores = [OneCore(whole, number) for number in range(len(engines))]
        for uc, core in zip(engines, self.cores, strict=True):
            self._hooks(uc, core, plan)

    def _hooks(self, uc: Any, core: OneCore, plan: CountPlan) -> None:
        import unicorn

        own, reads = self.library, unicorn.UC_HOOK_MEM_READ
        self._hook(uc, core, unicorn.UC_HOOK_BLOCK, own.unicorn_block, (1, 0))
        table = (plan.table, plan.table + plan.step_bytes * plan.step_count - 1)
        self._hook(uc, core, reads, own.unicorn_read, table)
        if plan.call:
            kinds = reads | unicorn.UC_HOOK_MEM_WRITE
            words = (plan.call, plan.ready_end - 1)
            self._hook(uc, core, kinds, own.unicorn_meets, words)

    def _hook(
        self, uc: Any, core: OneCore, kind: int, function: Any, where: tuple[int, int]
    ) -> None:
        from unicorn.unicorn_py3.unicorn import uclib

        handle = ctypes.c_size_t()
        status = uclib.uc_hook_add(
            uc._uch, ctypes.byref(handle), kind,
            ctypes.cast(function, ctypes.c_void_p), ctypes.byref(core),
            ctypes.c_uint64(where[0]), ctypes.c_uint64(where[1]),
        )  # fmt: skip
        if status:
            raise BuildError("Unicorn", f"uc_hook_add gave error {status}")

    def counts(self) -> Counts:
        count = self.state.count
        used, steps = count.core[: len(self.cores)], count.step_count
        own = [(core.of_runtime, tuple(core.of_step[:steps])) for core in used]
        cycles = [
            (core.cycles_of_runtime, *core.cycles_of_step[:steps]) for core in used
        ]
        made = counts_of(used[0].time, own, len(used), cycles if self.known else None)
        ran = np.cumsum(self.ran).tolist()
        trace = Trace(int(self.state.code_at), ran, self.left.tolist())
        return replace(made, trace=trace)
