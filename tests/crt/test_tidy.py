"""clang-tidy's checks for bugs and of CERT C find nothing in crt, but for two that are
disapplied as a whole."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.toolchains import INCLUDE, ROOT, SOURCES, require

TIDY = "clang-tidy-19"
# and why, as docs/testing.md has it
DISAPPLIED = {
    "bugprone-casting-through-void": "memory is passed as bytes and used with the "
    "types in the tables; its alignment is tested when an instance is prepared",
    "bugprone-easily-swappable-parameters": "steps, rows and bytes are all uint32_t",
}
CHECKS = ",".join(["-*", "bugprone-*", "cert-*", *(f"-{name}" for name in DISAPPLIED)])


def findings(sources: Sequence[Path], checks: str = CHECKS) -> list[str]:
    """Its warnings, in the files and in crt's headers."""
    words = [require(TIDY), "--quiet", f"--checks={checks}", "--header-filter=.*"]
    done = subprocess.run(
        [*words, *map(str, sources), "--", "-std=c99", f"-I{INCLUDE}"],
        capture_output=True, text=True,
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if " warning: " in line]
    assert done.returncode == 0 and "error:" not in done.stdout, done.stdout
    return sorted(set(found))


@pytest.mark.parametrize("switch", ["", "CRT_NO_STRING_H"])
def test_nothing_is_found_in_crt(switch: str, tmp_path: Path) -> None:
    sources = list(SOURCES)
    if switch:
        sources = [tmp_path / source.name for source in SOURCES]
        for source, copy in zip(SOURCES, sources, strict=True):
            copy.write_text(f"#define {switch}\n{source.read_text()}")
    assert findings(sources) == []


def test_what_is_disapplied_is_found_without_that(tmp_path: Path) -> None:
    """A check that finds nothing more needs no reason."""
    found = findings(SOURCES, ",".join(["-*", *DISAPPLIED]))
    assert {re.findall(r"\[([\w-]+)\]", line)[0] for line in found} == {*DISAPPLIED}
    page = " ".join((ROOT / "docs" / "testing.md").read_text().split())
    for name, why in DISAPPLIED.items():
        assert f"`{name}` ({why})" in page


def test_a_fault_is_found(tmp_path: Path) -> None:
    """A number that is widened after its product has wrapped."""
    source = tmp_path / "fault.c"
    source.write_text(
        "#include <stdint.h>\nconst char *at(const char *p, uint32_t i);\n"
        "const char *at(const char *p, uint32_t i)\n{\n    return p + 4u * i;\n}\n"
    )
    assert "implicit-widening" in "".join(findings([source]))
