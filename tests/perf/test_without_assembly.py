"""CRT_NO_ASM leaves inline assembly out of crt's headers, and values as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.boards.programs import compiler
from tests.objects.images import CORES
from tests.perf import measure
from tests.perf.layers import layer
from tests.perf.measure import Layer
from tests.perf.operators import operator
from tests.toolchains import INCLUDE, run

OUT = "-DCRT_NO_ASM"
NAMES = ("cortex-m4", "cortex-m55")


@pytest.mark.parametrize("core", NAMES)
def test_headers_have_none(core: str, tmp_path: Path) -> None:
    source = tmp_path / "all.c"
    headers = sorted((INCLUDE / "crt").glob("*.h"))
    source.write_text("".join(f'#include "crt/{path.name}"\n' for path in headers))

    def found(*flags: str) -> int:
        text = run([*compiler(CORES[core]), *flags, f"-I{INCLUDE}", "-E", source])
        parts = re.split(r'^# \d+ "([^"]*)".*$', text, flags=re.M)
        own = (part for name, part in zip(parts[1::2], parts[2::2], strict=True)
               if "/crt/" in name)  # fmt: skip
        return sum(len(re.findall(r"\basm\b|__asm", part)) for part in own)

    assert found() > 10
    assert found(OUT) == 0


def drawn() -> list[Layer]:
    """A layer of each class, and of floats that are quantised."""
    layers = {made.kind: made for made in map(layer, range(40))}
    assert len(layers) > 6
    some = [operator(kind, 1) for kind in ("quantise", "prelu", "add int16")]
    return [*layers.values(), *some]


# each of them on a core in each run, on both in all tests
HALVES = [(core, half) for core in NAMES for half in (0, 1)]


# @req config.h:CRT_NO_ASM
@pytest.mark.parametrize(
    ("core", "half"),
    [
        pytest.param(*way, marks=pytest.mark.sweep if n in (1, 2) else ())
        for n, way in enumerate(HALVES)
    ],
)
def test_values_are_the_same(
    core: str, half: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = measure.device(core)
    plain = replace(own, core=replace(own.core, gcc=(*own.core.gcc, OUT)))
    monkeypatch.setattr(measure, "device", lambda _: plain)
    for made in drawn()[half::2]:
        assert measure.measured(made, core, "c").unequal == 0, made.words
