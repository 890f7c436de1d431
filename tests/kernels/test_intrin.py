"""Every machine instruction of kernels: its meaning, its C and its LLVM spelling.

The C runs on this machine (gcc and clang: the scalar meaning) and on an emulated
Cortex-M4 (the instruction); LLVM's as JIT and as a Cortex-M4 object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.emit.kernels import c
from pybuild.emit.kernels import llvm as printer
from pybuild.emit.kernels.llvm_declared import declarations
from pybuild.ir.loop import (
    INT8,
    INT32,
    INT64,
    Expr,
    Func,
    Intrin,
    Type,
    i32,
    i64,
    load,
    wide,
)
from pybuild.kernels.base import between, extremes, intrin, pairs, reals
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.toolchains import INCLUDE, STRICT, require, run

DSP = frozenset({"dsp"})
N = 64
_UP = 16  # bits of a sum of 64 that are not seen


def _low(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int16).astype(np.int64)


def _bytes(x: np.ndarray, which: tuple[int, int]) -> np.ndarray:
    low, high = ((x >> 8 * i).astype(np.int8).astype(np.int64) for i in which)
    return (high << 16) + (low & 0xFFFF)


def _added(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (((x >> 16) + (w >> 16)) << 16) + (x + w & 0xFFFF)


def _each_half(f: np.ufunc, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (f(x >> 16, w >> 16) << 16) + (f(_low(x), _low(w)) & 0xFFFF)


def _each_byte(f: np.ufunc, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    both = (v.astype(np.int32).view(np.int8) for v in (x, w))
    return np.asarray(f(*both)).view(np.int32).astype(np.int64)


def _held_bytes(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    a, b = (v.astype(np.int32).view(np.int8).astype(int) for v in (x, w))
    held = np.clip(a - b, -128, 127).astype(np.int8)
    return held.view(np.int32).astype(np.int64)


def _half(x: np.ndarray) -> np.ndarray:
    return x >> 1


def _held(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -32768, 32767)


def _swapped(x: np.ndarray) -> np.ndarray:
    return (_low(x) << 16) + (x >> 16 & 0xFFFF)


def _pair(
    x: np.ndarray,
    w: np.ndarray,
    signs: tuple[int, int],
    end: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Signs of the low and of the high half of w."""
    high = end((x >> 16) + signs[1] * (w >> 16))
    return (high << 16) + (end(_low(x) + signs[0] * _low(w)) & 0xFFFF)


def _whole(bits: np.ndarray, rounded: np.ufunc) -> np.ndarray:
    """Of the float with these bits."""
    x = rounded(bits.astype(np.int32).view(np.float32).astype(np.float64))
    held = np.clip(np.nan_to_num(x, nan=0.0), -(2.0**31), 2.0**31 - 1)
    return np.asarray(held.astype(np.int64))


def _widened(bits: np.ndarray) -> np.ndarray:
    """The bits of the float32 of a float16."""
    halves = bits.astype(np.uint16).view(np.float16)
    return np.asarray(halves.astype(np.float32).view(np.int32).astype(np.int64))


MEANINGS: dict[str, Callable[..., np.ndarray]] = {
    "crt_dot2": lambda x, w, a: a + _low(x) * _low(w) + (x >> 16) * (w >> 16),
    # of sums of 64 bits, see _of_64
    "crt_long_dot2": lambda x, w, a: (
        (a << _UP) + _low(x) * _low(w) + (x >> 16) * (w >> 16) >> _UP
    ),
    "crt_long_mla": lambda x, w, a: (a << _UP) + x * w >> _UP,
    "crt_mla_low": lambda x, w, a: a + _low(x) * _low(w),
    "crt_mla_high": lambda x, w, a: a + (x >> 16) * (w >> 16),
    "crt_mla_low_high": lambda x, w, a: a + _low(x) * (w >> 16),
    "crt_mla_high_low": lambda x, w, a: a + (x >> 16) * _low(w),
    "crt_low_halves": lambda x, w: (_low(w) << 16) + (x & 0xFFFF),
    "crt_high_halves": lambda x, w: (w >> 16 << 16) + (x >> 16 & 0xFFFF),
    "crt_add2": lambda x, w: _added(x, w),
    "crt_sub2": lambda x, w: (((x >> 16) - (w >> 16)) << 16) + (x - w & 0xFFFF),
    "crt_half_add2": lambda x, w: _pair(x, w, (1, 1), _half),
    "crt_half_sub2": lambda x, w: _pair(x, w, (-1, -1), _half),
    "crt_half_add_turned": lambda x, w: _pair(x, _swapped(w), (-1, 1), _half),
    "crt_half_sub_turned": lambda x, w: _pair(x, _swapped(w), (1, -1), _half),
    "crt_held_add2": lambda x, w: _pair(x, w, (1, 1), _held),
    "crt_held_sub2": lambda x, w: _pair(x, w, (-1, -1), _held),
    "crt_held_add_turned": lambda x, w: _pair(x, _swapped(w), (-1, 1), _held),
    "crt_held_sub_turned": lambda x, w: _pair(x, _swapped(w), (1, -1), _held),
    "crt_times_real": lambda x, w, a: a + _low(x) * _low(w) - (x >> 16) * (w >> 16),
    "crt_times_imaginary": lambda x, w, a: (
        a + _low(x) * (w >> 16) + (x >> 16) * _low(w)
    ),
    "crt_even_bytes": lambda x: _bytes(x, (0, 2)),
    "crt_odd_bytes": lambda x: _bytes(x, (1, 3)),
    "crt_add_even_bytes": lambda x, w: _added(x, _bytes(w, (0, 2))),
    "crt_add_odd_bytes": lambda x, w: _added(x, _bytes(w, (1, 3))),
    "crt_max_bytes": lambda x, w: _each_byte(np.maximum, x, w),
    "crt_min_bytes": lambda x, w: _each_byte(np.minimum, x, w),
    "crt_max_halves": lambda x, w: _each_half(np.maximum, x, w),
    "crt_min_halves": lambda x, w: _each_half(np.minimum, x, w),
    "crt_held_sub_bytes": lambda x, w: _held_bytes(x, w),
    "crt_saturate8": lambda x: np.clip(x, -128, 127),
    "crt_saturate16": lambda x: np.clip(x, -32768, 32767),
    "crt_held_14_bits": lambda x: np.clip(x, 0, 2**14 - 1),
    "crt_held_16_bits": lambda x: np.clip(x, 0, 2**16 - 1),
    "crt_held_17_bits": lambda x: np.clip(x, 0, 2**17 - 1),
    "crt_two_points": lambda x, w, a: a + _low(x) * _low(w) + (x >> 16) * (w >> 16),
    "crt_mulhi": lambda x, w: (x * w) >> 32,
    "crt_mulhi_add": lambda x, w, a: a + ((x * w) >> 32),
    "crt_mulhi_add_round": lambda x, w, a: a + ((x * w + (1 << 31)) >> 32),
    "crt_in_order": lambda x: x,
    "crt_kept": lambda x: x,
    "crt_float_in_order": lambda x: x,  # the bits
    "crt_from_half": lambda x: _widened(x),
    "crt_from_high_half": lambda x: _widened(x >> 16),
    "crt_whole": lambda x: _whole(x, np.trunc),
    "crt_whole_even": lambda x: _whole(x, np.rint),
}
INTRINS = [
    v for m in (intrin, pairs) for v in vars(m).values() if isinstance(v, Intrin)
]
INTRINS += [reals.WHOLE, reals.WHOLE_EVEN, reals.FROM_HALF, reals.FROM_HIGH_HALF]
INTRINS += [between.HELD14, between.HELD16, between.HELD17, between.TWO_POINTS]
INTRINS += [extremes.MIN_BYTES, extremes.MAX_HALVES, extremes.MIN_HALVES]


def _values(name: str) -> list[np.ndarray]:
    chance = np.random.default_rng(len(name))
    edges = [0, -1, 1, 0x7F80FF01, -(2**31), 2**31 - 1, 0x00FF7F80, -0x7F0081]
    made = [chance.integers(-(2**31), 2**31, N) for _ in range(2)]
    made.append(chance.integers(-(2**20), 2**20, N))
    made[0][: len(edges)], made[1][: len(edges)] = edges, edges[::-1]
    if name.startswith("crt_whole"):
        ends = [0.5, 1.5, 2.5, 0.49999997, np.inf, np.nan, 2**31, 2**31 - 128, 1e-40]
        ends += [2**22 + 0.5, 2**22 + 1.5, 2**23 - 0.5, 2**23 + 1, 1.9999999]
        numbers = np.concatenate(
            [ends, np.negative(ends), made[0][: N - 2 * len(ends)]]
        )
        numbers[2 * len(ends) :] *= 2.0 ** chance.integers(-32, 3, N - 2 * len(ends))
        return [numbers.astype(np.float32).view(np.int32)]
    if name.startswith("crt_from_"):  # subnormal, infinite, quiet NaN
        edges = [0, 1, 0x8000, 0x83FF, 0x400, 0x3FF, 0x7BFF, 0x7C00, 0xFC00, 0x7E01]
        finite = made[0] & 0x7BFF7BFF
        finite[: len(edges)] = edges
        finite[len(edges) : 2 * len(edges)] = np.multiply(edges, 1 << 16)
        return [finite.astype(np.int32)]
    if name == "crt_float_in_order":
        return [chance.standard_normal(N).astype(np.float32).view(np.int32)]
    if name in ("crt_dot2", "crt_two_points") or name.startswith("crt_mla"):
        # int8 values by int16 weights: no product leaves int32
        pairs = chance.integers(-128, 128, (2, N))
        made[0] = (pairs[0] << 16) + (pairs[1] & 0xFFFF)
    if name == "crt_long_mla":  # 46 bits, of which 30 are seen
        made[:2] = [m >> 8 for m in made[:2]]
    if name.startswith(("crt_add", "crt_sub")):  # no lane leaves int16
        made = [m >> 1 for m in made]
    return [m.astype(np.int32) for m in made]


def _of_64(value: Expr, kind: Type) -> Expr:
    """Sums of 64 bits are made of words, and shown in words: less their low bits."""
    return i64(value) * (1 << _UP) if kind is INT64 else value


def _kernel(one: Intrin) -> Func:
    k = Builder(f"test_{one.name}")
    kind = one.params[0].type
    assert isinstance(kind, DType)
    made_of = kind if one.result.type is INT64 else one.result.type
    assert isinstance(made_of, DType)
    y = k.row("y", 0, made_of, writable=True)
    rows = [k.row(f"row_{p.name}", i + 1, kind) for i, p in enumerate(one.params)]
    with k.loop("i", k.arg("n", N), rolled=True) as i:
        given = [
            _of_64(load(r, i), p.type) for r, p in zip(rows, one.params, strict=True)
        ]
        made = one(*given)
        k.store(y, i, i32(made >> i64(_UP)) if made.type is INT64 else made)
    return k.finish()


def _jobs() -> list[tuple[Job, np.ndarray]]:
    found = []
    for one in INTRINS:
        values = _values(one.name)[: len(one.params)]
        want = MEANINGS[one.name](*(v.astype(np.int64) for v in values))
        assert want.min() >= -(2**31) and want.max() < 2**31
        rows = tuple(
            RowAccess(n, 1, 4 * N, 1, 0) for n in ("y", *(p.name for p in one.params))
        )
        offer = Candidate(_kernel(one), (N,), rows[:1], rows[1:])
        arrays = dict(zip((p.name for p in one.params), values, strict=True))
        found.append((Job(offer, arrays, {"y": np.zeros(N, np.int32)}), want))
    return found


def test_all_have_a_meaning_here() -> None:
    assert {one.name for one in INTRINS} == set(MEANINGS)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_on_this_machine(compiler: str, tmp_path: Path) -> None:
    require(compiler)
    jobs = _jobs()
    for result, (_, want) in zip(
        run_c([job for job, _ in jobs], tmp_path, compiler), jobs, strict=True
    ):
        np.testing.assert_array_equal(result["y"], want)


def test_llvm_on_this_machine() -> None:
    jobs = _jobs()
    for result, (job, want) in zip(run_llvm([j for j, _ in jobs]), jobs, strict=True):
        np.testing.assert_array_equal(result["y"], want, job.candidate.func.name)


def _main(jobs: list[tuple[Job, np.ndarray]]) -> str:
    """Runs every kernel on its values; the first that is wrong is the exit status."""
    lines = ['#include "crt/abi.h"']
    calls = []
    for number, (job, want) in enumerate(jobs, 1):
        name = job.candidate.func.name
        lines.append(f"extern void {name}(void *const *p, const int32_t *a);")
        given = [*job.arrays.values(), want.astype(np.int32)]
        for index, array in enumerate(given):
            text = ", ".join(f"{v}" if v > -(2**31) else "INT32_MIN" for v in array)
            lines.append(f"static int32_t v{number}_{index}[] = {{{text}}};")
        rows = "".join(f", v{number}_{i}" for i in range(len(given) - 1))
        calls.append(f"    {{ void *p[] = {{y{rows}}};")
        calls.append(f"    {name}(p, n);")
        last = f"v{number}_{len(given) - 1}"
        calls.append(f"    for (int i = 0; i < {N}; i++)")
        calls.append(f"        if (y[i] != {last}[i]) return {number}; }}")
    head = f"static int32_t y[{N}];\nstatic const int32_t n[] = {{{N}}};"
    return "\n".join(
        [*lines, head, "int main(void)", "{", *calls, "    return 0;", "}\n"]
    )


def _on_cortex_m4(
    folder: Path, jobs: list[tuple[Job, np.ndarray]], kernels: Path
) -> None:
    target, image, main = "cortex-m4", folder / "intrin.elf", folder / "main.c"
    main.write_text(_main(jobs))
    command = [*compiler(CORES[target]), *STRICT, "-O2", f"-I{INCLUDE}"]
    run([*command, main, kernels, *link_flags(target, folder), "-o", image])
    emulated(target, image)


def test_c_on_a_cortex_m4(tmp_path: Path) -> None:
    jobs = _jobs()
    source = tmp_path / "kernels.c"
    parts = ['#include "crt/abi.h"', '#include "crt/pairs.h"']
    parts += ['#include "crt/reals.h"', '#include "crt/extremes.h"']
    parts.append('#include "crt/between.h"')
    for job, _ in jobs:
        func = job.candidate.func
        parts.append(f"void {func.name}(void *const *p, const int32_t *a);")
        parts.append(c.function(func, linkage=""))
    source.write_text("\n".join(parts))
    _on_cortex_m4(tmp_path, jobs, source)
    listing = tmp_path / "kernels.s"
    run([*compiler(CORES["cortex-m4"]), "-O2", f"-I{INCLUDE}", "-S",
         source, "-o", listing])  # fmt: skip
    for word in (
        "smlad",
        "smlald",
        "smlabb",
        "smlatt",
        "smlabt",
        "smlatb",
        "sxtb16",
        "sxtab16",
        "ror #8",
        "smmul",
        "smmlar",
        "ssub8",
        "ssub16",
        "ssat",
        "vcvt.s32.f32",
        "vcvtr.s32.f32",
        "vcvtb.f32.f16",
        "vcvtt.f32.f16",
    ):
        assert word in listing.read_text()


def test_llvm_on_a_cortex_m4(tmp_path: Path) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("thumbv7em-unknown-none-eabihf")
    machine = target.create_target_machine(
        cpu="cortex-m4", features="+dsp", opt=2, reloc="static"
    )
    jobs = _jobs()
    text = "\n".join(printer.function(j.candidate.func, features=DSP) for j, _ in jobs)
    text = f'target triple = "{machine.triple}"\n{text}\n{declarations(DSP)}'
    module = llvm.parse_assembly(f"{text}attributes #0 = {{ nounwind }}\n")
    module.verify()
    kernels = tmp_path / "kernels.o"
    kernels.write_bytes(machine.emit_object(module))
    assembly = machine.emit_assembly(module)
    for word in (
        "smlad", "smlald", "smlabb", "smlatt", "sxtb16", "ror #8", "smmul",
        "smmlar", "ssub8", "ssub16", "ssat", "vcvt.s32.f32", "vcvtr.s32.f32",
    ):  # fmt: skip
        assert word in assembly
    _on_cortex_m4(tmp_path, jobs, kernels)


@pytest.mark.parametrize("shift", [1, 9, 31])
def test_a_shift_to_the_right_is_part_of_saturating(shift: int, tmp_path: Path) -> None:
    k = Builder("shifted")
    x = k.row("x", 1, INT32)
    held = intrin.SATURATE8(load(x) >> shift)
    k.store(k.row("y", 0, INT32, writable=True), 0, held)
    source = tmp_path / "kernel.c"
    parts = ['#include "crt/abi.h"', '#include "crt/pairs.h"']
    head = "void shifted(void *const *p, const int32_t *a);"
    source.write_text("\n".join([*parts, head, c.function(k.finish(), linkage="")]))
    listing = tmp_path / "kernel.s"
    command = [*compiler(CORES["cortex-m4"]), *STRICT, "-O2", f"-I{INCLUDE}", "-S"]
    run([*command, source, "-o", listing])
    words = " ".join(listing.read_text().split())
    assert re.search(rf"ssat r\d+, #8, r\d+, asr #{shift}\b", words), words


def test_words_are_read_at_any_address(tmp_path: Path) -> None:
    k = Builder("words")
    y = k.row("y", 0, INT32, writable=True)
    x = k.row("x", 1, INT8)
    with k.loop("i", k.arg("n", 13)) as i:
        k.store(y, i, wide(x, i))
    rows = (RowAccess("y", 1, 52, 1, 0), RowAccess("x", 1, 16, 1, 0))
    given = np.arange(16, dtype=np.int8) * 37
    job = Job(
        Candidate(k.finish(), (13,), rows[:1], rows[1:]),
        {"x": given},
        {"y": np.zeros(13, np.int32)},
    )
    want = [int.from_bytes(given.tobytes()[i : i + 4], "little", signed=True)
            for i in range(13)]  # fmt: skip
    for results in (run_llvm([job]), run_c([job], tmp_path)):
        assert results[0]["y"].tolist() == want
