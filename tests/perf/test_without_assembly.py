"""CRT_NO_ASM leaves inline assembly out of crt's headers, and values as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.boards.devices import CORES as BOARDS
from tests.boards.programs import compiler
from tests.objects.images import CORES
from tests.perf import measure
from tests.perf.layers import CLASSES, layer
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


# @req config.h:CRT_NO_ASM
@pytest.mark.parametrize("core", NAMES)
def test_values_are_the_same(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a layer of each class, and of floats that are quantised."""
    own = measure.device(core)
    without = replace(own.core, gcc=(*own.core.gcc, OUT))
    plain = replace(own, core=without)
    drawn = {made.kind: made for made in map(layer, range(40))}
    assert set(drawn) <= set(CLASSES) and len(drawn) > 6 and core in BOARDS
    some = [operator(kind, 1) for kind in ("quantise", "prelu", "add int16")]
    more = 0
    for made in (*drawn.values(), *some):
        usual = measure.measured(made, core, "c")
        monkeypatch.setattr(measure, "device", lambda _: plain)
        found = measure.measured(made, core, "c")
        monkeypatch.setattr(measure, "device", lambda _: own)
        assert (usual.unequal, found.unequal) == (0, 0), made.words
        more += found.instructions > usual.instructions
    assert more > len(drawn) // 2
