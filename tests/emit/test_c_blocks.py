"""Runs of vector loads and products as pieces of assembly: random ones make, on an
emulated Cortex-M55, what their Loop IR means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pybuild.emit.kernels import c
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Expr,
    Func,
    Piece,
    Var,
    VectorType,
    const,
    i32,
    load,
    offset,
    wide,
)
from pybuild.ir.loop_verify import intrins
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.vector_packs import ODD4, TWOS4
from pybuild.kernels.base.vectors import DOT8, DOT16, LANES
from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.kernels.kernel_bench import Job, run_llvm
from tests.toolchains import INCLUDE, STRICT, run

CORE = "cortex-m55"
BYTES = 8192  # of a row of values
SUMS = 128
TURNS = (0, 1, 2, 5)
SEEDS = range(36)
_BYTES16 = VectorType(INT8, 16)
LEVELS = (
    "-O1",
    "-Os",
    "-O2 -fno-omit-frame-pointer -ffixed-r9",
    pytest.param("-O2", marks=pytest.mark.sweep),
    pytest.param("-O3", marks=pytest.mark.sweep),
)


class _Random:
    """A kernel of some pixels and channels, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.pixels = 1 + seed % 3
        self.channels = (2, 4)[seed // 3 % 2] if self.pixels < 3 else 2
        self.elem, self.weight = ((INT8, INT8), (INT16, INT8), (INT16, INT16))[
            seed // 6 % 3
        ]
        self.lanes = 16 // self.elem.bytes
        self.dot = DOT16 if self.elem is INT8 else DOT8
        self.stored = 0
        self.k = k = Builder(f"block_{seed}")
        y = k.row("y", 0, INT32, writable=True)
        x = k.row("x", 1, self.elem)
        w = k.row("w", 2, self.weight)
        turns = k.arg("turns", TURNS[seed % len(TURNS)])
        with k.part(f"part_{seed}", "sums", y=y, x=x, w=w, turns=turns) as given:
            self.y, self.x, self.w, self.turns = given
            self._write()

    def _write(self) -> None:
        k = self.k
        w, y = k.let("weights", self.w), k.let("to", self.y)
        pixels = [offset(self.x, 32 * p) if p else self.x for p in range(self.pixels)]
        sources = [k.let("source", at) for at in pixels]
        # with steps written out twice, as in conv_code.py, then in a loop
        with k.loop("block", const(2)):
            for _ in range(1 + int(self.chance.integers(2))):
                self._written_out(sources, w, y)
            self._looped(sources, w, y)

    def _sums(self) -> list[list[Var]]:
        start = int(self.chance.integers(2)) * 1000
        return [
            [self.k.let(f"acc{p}{c}", const(start)) for c in range(self.channels)]
            for p in range(self.pixels)
        ]

    def _add(self, sums: list[list[Var]], values: list[Var], w: Var) -> None:
        k = self.k
        kind = VectorType(self.elem, self.lanes)
        for channel in range(self.channels):
            weight = k.let("weight", wide(w, self.lanes * channel, kind))
            for four, value in zip(sums, values, strict=True):
                k.assign(four[channel], self.dot(four[channel], value, weight))
        k.assign(w, offset(w, self.lanes * self.channels))

    def _values(self, sources: list[Var], step: int) -> list[Var]:
        kind = VectorType(self.elem, self.lanes)
        at = self.lanes * step
        return [self.k.let("values", wide(x, at, kind)) for x in sources]

    def _written_out(self, sources: list[Var], w: Var, y: Var) -> None:
        steps = 1 + int(self.chance.integers(4))
        held = [self._values(sources, s) for s in range(steps)]
        known = steps * self.pixels <= 4 and bool(self.chance.integers(2))
        fours: list[Var] = []
        single: list[list[Var]] = []
        # of a third time the sums are stored one by one, behind what packs the others
        for turn in range(3 if self.channels == 2 and self.pixels < 3 else 2):
            sums = self._sums()
            for step in range(steps):
                values = held[step] if known else self._values(sources, step)
                self._add(sums, values, w)
            if self.channels == 4:
                for four in sums:
                    self._store(y, LANES(*four))
            elif turn == 2:
                single = sums
            elif not fours:
                fours = [self.k.let("four", TWOS4(*pair)) for pair in sums]
            else:
                for both, pair in zip(fours, sums, strict=True):
                    self.k.assign(both, ODD4(both, *pair))
        for both in fours:
            self._store(y, both)
        self._store_each(y, single)

    def _looped(self, sources: list[Var], w: Var, y: Var) -> None:
        k, sums, turn = self.k, self._sums(), 1 + int(self.chance.integers(3))
        moving = [k.let("from", x) for x in sources]
        stop = self.turns * turn - int(self.chance.integers(turn))
        with k.loop("step", stop, 0, turn, rolled=True):
            for step in range(turn):
                self._add(sums, self._values(moving, step), w)
            for x in moving:
                k.assign(x, offset(x, self.lanes * turn))
        self._store_each(y, sums)

    def _store_each(self, y: Var, sums: list[list[Var]]) -> None:
        for total in (one for four in sums for one in four):
            self.k.store(y, 0, total)
            self.k.assign(y, offset(y, 1))
            self.stored += 2

    def _store(self, y: Var, four: Expr) -> None:
        self.k.store(y, 0, four)
        self.k.assign(y, offset(y, 4))
        self.stored += 2 * 4


class _OnePlace(_Random):
    """A pointer that moves begins where one does that stays, as gcc knows."""

    def _write(self) -> None:
        w, y = self.k.let("weights", self.w), self.k.let("to", self.y)
        sums = self._sums()
        for step in range(3):
            self._add(sums, self._values([self.w], step), w)
        self._store_each(y, sums)
        self.stored = len(sums[0])  # once


def _rows() -> dict[str, np.ndarray]:
    """What all read: no sum leaves int32."""
    chance = np.random.default_rng(1)
    return {
        elem.c: chance.integers(-100, 101, BYTES // elem.bytes).astype(elem.numpy)
        for elem in (INT8, INT16)
    }


def _job(made: _Random) -> Job:
    func, rows = made.k.finish(), _rows()
    access = tuple(
        RowAccess(name, 1, size, 1, 0)
        for name, size in (("y", 4 * SUMS), ("x", BYTES), ("w", BYTES))
    )
    arrays = {"x": rows[made.elem.c], "w": rows[made.weight.c]}
    offer = Candidate(func, tuple(made.k.values), access[:1], access[1:])
    return Job(offer, arrays, {"y": np.zeros(SUMS, np.int32)})


def _main(made: Sequence[_Random], wanted: Sequence[np.ndarray]) -> str:
    """The first kernel that makes something else is the exit status."""
    lines = ['#include "crt/abi.h"']
    for name, row in _rows().items():
        values = ", ".join(map(str, row))
        lines.append(f"static {name} row_{name}[] = {{{values}}};")
    lines.append(f"static int32_t y[{SUMS}];")
    calls = []
    for number, (one, want) in enumerate(zip(made, wanted, strict=True), 1):
        name = one.k.name
        lines.append(f"extern void {name}(void *const *p, const int32_t *a);")
        count = one.stored
        values = ", ".join(map(str, want[:count]))
        lines.append(f"static const int32_t want_{number}[] = {{{values}}};")
        rows = f"{{y, row_{one.elem.c}, row_{one.weight.c}}}"
        given = f"{{{', '.join(map(str, [*one.k.values, 0]))}}}"
        calls.append(f"    {{ void *p[] = {rows}; static const int32_t a[] = {given};")
        calls.append(f"    {name}(p, a);")
        calls.append(f"    for (int i = 0; i < {count}; i++)")
        calls.append(f"        if (y[i] != want_{number}[i]) return {number}; }}")
    return "\n".join([*lines, "int main(void)", "{", *calls, "    return 0;", "}\n"])


def _source(made: Sequence[_Random]) -> str:
    parts = ['#include "crt/abi.h"', '#include "crt/packs.h"']
    for one in made:
        func = one.k.finish()
        parts += [c.inline_function(piece) for piece in intrins(func)
                  if isinstance(piece, Piece)]  # fmt: skip
        parts.append(f"void {func.name}(void *const *p, const int32_t *a);")
        parts.append(c.function(func, linkage=""))
    return "\n".join(parts)


@pytest.fixture(scope="module")
def drawn() -> tuple[list[_Random], list[np.ndarray]]:
    made = [*map(_Random, SEEDS), _OnePlace(len(SEEDS))]
    return made, [found["y"] for found in run_llvm([_job(one) for one in made])]


@pytest.mark.parametrize("level", LEVELS)
def test_assembly_is_what_the_loops_mean(
    level: str, drawn: tuple[list[_Random], list[np.ndarray]], tmp_path: Path
) -> None:
    made, wanted = drawn
    kernels, main, image = (tmp_path / n for n in ("kernels.c", "main.c", "run.elf"))
    kernels.write_text(_source(made))
    main.write_text(_main(made, wanted))
    command = [*compiler(CORES[CORE]), *STRICT, *level.split(), f"-I{INCLUDE}"]
    run([*command, main, kernels, *link_flags(CORE, tmp_path), "-o", image])
    emulated(CORE, image)


def test_all_forms_are_drawn() -> None:
    """Loops that count in lr and elsewhere, sums that begin and go on, registers that
    gcc chooses and that are named, vectors that are kept, given and made."""
    made = [_Random(seed) for seed in SEEDS]
    texts = [_source([one]) for one in made]
    assert all("CRT_MVE_BLOCKS" in text for text in texts)
    forms = (
        "wls lr", "subs %[turns]", '"=&Te"', '"+&Te"', '__asm__("r12")', '"+&r"',
        '"+&l"', '"=&w"', '"w"', "vmladav.s8", "vmladava.s16", "#16",
    )  # fmt: skip
    for form in forms:
        assert any(form in text for text in texts), form


def test_a_vector_that_is_loaded_again_is_kept() -> None:
    k = Builder("again")
    y, x = k.row("y", 0, INT32, writable=True), k.row("x", 1, INT8)
    with k.part("part", "sums", y=y, x=x) as (to, at):
        sums = [k.let("acc", const(0)) for _ in range(2)]
        for total in sums:
            values = [k.let("values", wide(at, 16 * i, _BYTES16)) for i in range(2)]
            k.assign(total, DOT16(total, *values))
        for i, total in enumerate(sums):
            k.store(to, i, total)
    text = c.inline_function(_piece(k.finish()))
    assembly = text.split("#else")[0]
    assert assembly.count("vldrb.8") == 2 and assembly.count("vmladav.s8") == 2


def test_a_pointer_that_has_moved_loads_another_vector() -> None:
    k = Builder("another")
    y, x = k.row("y", 0, INT32, writable=True), k.row("x", 1, INT8)
    with k.part("part", "sums", y=y, x=x) as (to, first):
        at = k.let("at", first)
        sums = [k.let("acc", const(0)) for _ in range(2)]
        one = k.let("one", wide(at, 0, _BYTES16))
        k.assign(sums[0], DOT16(sums[0], one, one))
        k.assign(at, offset(at, 16))
        other = k.let("other", wide(at, 0, _BYTES16))
        k.assign(sums[1], DOT16(sums[1], other, other))
        for i, total in enumerate(sums):
            k.store(to, i, total + i32(load(at, i)))
    assembly = c.inline_function(_piece(k.finish())).split("#else")[0]
    assert assembly.count("vldrb.8") == 2


def test_a_pointer_that_moves_without_a_load_is_no_block() -> None:
    k = Builder("moves")
    y = k.row("y", 0, INT32, writable=True)
    x, w = (k.row(name, 1 + i, INT8) for i, name in enumerate("xw"))
    with k.part("part", "sums", y=y, x=x, w=w) as (to, at, other):
        sums = [k.let("acc", const(0)) for _ in range(2)]
        moving = k.let("moving", other)
        values = k.let("values", wide(at, 0, _BYTES16))
        for total in sums:
            k.assign(total, DOT16(total, values, values))
        k.assign(moving, offset(moving, 16))
        for i, total in enumerate(sums):
            k.store(to, i, total + i32(load(moving, i)))
    assert "CRT_MVE_BLOCKS" not in c.inline_function(_piece(k.finish()))


def _piece(func: Func) -> Piece:
    (found,) = (one for one in intrins(func) if isinstance(one, Piece))
    return found
