"""The rules of rounding of crt/rounds.h as Cortex-M55's instructions, which no other
machine has: at ties and beside them, on both sides of zero, against integers of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.toolchains import INCLUDE, STRICT, run

CORE = "cortex-m55"
MULTIPLIERS = (1 << 30, 3 << 29, 5 << 28, (1 << 31) - 1, 1_518_500_250, 0)
SHIFTS = (0, 1, 2, 5, 9, 15, 24, 29)
Rule = Callable[[int, int, int], int]
CHECK = """{arrays}
static int {name}_wrong(void)
{{
    int wrong = 0;
    for (int i = 0; i < {count}; i += 4) {{
        int32_t made[4];
        crt_int32x4 v = vld1q_s32({name}_v + i);
        vst1q_s32(made, {name}(v, vld1q_s32({name}_m + i), vld1q_s32({name}_n + i)));
        for (int j = 0; j < 4; j++) {{
            if (made[j] != {name}_want[i + j] && wrong++ < 5) {{
                printf("{name} %d: %d, not %d\\n", i + j, (int)made[j],
                       (int){name}_want[i + j]);
            }}
        }}
    }}
    return wrong;
}}
"""
HEAD = '#include <stdio.h>\n#include <stdint.h>\n#include "crt/rounds.h"\n'


def _up(value: int, bits: int) -> int:
    """value / 2^bits, ties up."""
    return (value + (1 << bits >> 1)) >> bits


def _away(value: int, bits: int) -> int:
    return -_up(-value, bits) if value < 0 else _up(value, bits)


RULES: dict[str, Rule] = {
    "crt_twice4": lambda v, m, right: _away(_up(v * m, 31), right),
    "crt_twice_down4": lambda v, m, right: _away(_up(v * m, 31), right),
    "crt_once4": lambda v, m, right: _up(v * m >> 32, right),
    "crt_away4": lambda v, m, right: _away(v * m, 32 + right),
}


def _made(name: str) -> tuple[list[int], list[int], list[int], list[int]]:
    """What is given, as v, m and n, and what must come of it."""
    chance = np.random.default_rng(9)
    found: list[tuple[int, int, int, int]] = []
    for m in MULTIPLIERS:
        for right in SHIFTS if name == "crt_twice4" else SHIFTS[1:]:
            # odd multiples of a power of two are halfway by the first three multipliers
            steps = [1 << bits for bits in range(min(right + 4, 28))][-4:]
            odd = [s * o for s in steps for o in (-5, -3, -1, 1, 3, 5)]
            some = [v + by for v in odd for by in (-1, 0, 1)]
            some += map(int, chance.integers(-(2**31), 2**31, 8) >> right // 2)
            above = 0 if name == "crt_twice4" else int(chance.integers(-99, 99)) * 256
            n = above + (-right & 255 if above else -right)
            wanted = RULES[name]
            found += [(v, m, n, wanted(v, m, right)) for v in some if abs(v) < 2**31]
    found = found[: len(found) // 4 * 4]
    return tuple(map(list, zip(*found, strict=True)))  # type: ignore[return-value]


def _check(name: str) -> str:
    given = dict(zip(("v", "m", "n", "want"), _made(name), strict=True))
    arrays = "\n".join(
        f"int32_t {name}_{array}[] = {{{', '.join(map(str, numbers))}}};"
        for array, numbers in given.items()
    )
    return CHECK.format(name=name, arrays=arrays, count=len(given["v"]))


@pytest.mark.parametrize("kind", ["gcc", "zig"])
def test_rules_of_vectors_on_cortex_m55(kind: str, tmp_path: Path) -> None:
    source, made, image = (tmp_path / f"rules.{end}" for end in ("c", "o", "elf"))
    calls = " + ".join(f"{name}_wrong()" for name in RULES)
    main = f"int main(void)\n{{\n    return {calls} == 0 ? 0 : 1;\n}}\n"
    source.write_text("".join([HEAD, *map(_check, RULES), main]))
    flags = [*STRICT, "-O2", f"-I{INCLUDE}"]
    run([*compiler(CORES[CORE], kind), *flags, "-c", source, "-o", made])
    linker = compiler(CORES[CORE])
    run([*linker, made, *link_flags(CORE, tmp_path), "-o", image])
    emulated(CORE, image)
