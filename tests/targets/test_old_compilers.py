"""Compilers that are too old for a core: passed over, or refused by name."""

from __future__ import annotations

import pytest

from pybuild.errors import BuildError
from pybuild.targets import toolchain
from pybuild.targets.core import CORES
from pybuild.targets.toolchain import Toolchain, choose_toolchain

CORE = CORES["rv32imcv"]


@pytest.mark.parametrize(
    ("kind", "version", "known"),
    [
        ("gcc", "12.2.0", False),
        ("gcc", "14.1.0", True),
        ("clang", "14.0.6", False),
        ("clang", "17.0.0", True),
        ("gcc", "", False),
        ("zig", "0.17.1", True),
    ],
)
def test_versions(kind: str, version: str, known: bool) -> None:
    assert CORE.knows(kind, version) == known
    assert CORES["rv32imc"].knows(kind, version)


def _only(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """A machine that has these compilers alone."""

    def find(kind: str, _: str) -> Toolchain | None:
        if kind not in versions:
            return None
        return Toolchain(kind, f"some-{kind}", versions[kind], (kind,))

    monkeypatch.setattr(toolchain, "find_toolchain", find)


def test_one_that_knows_the_core_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, gcc="12.2.0", clang="14.0.6", zig="0.17.1")
    assert choose_toolchain("auto", CORE).kind == "zig"
    assert choose_toolchain("auto", CORES["rv32imc"]).kind == "gcc"


def test_an_old_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, gcc="12.2.0")
    wanted = (
        "--toolchain: some-gcc 12.2.0 does not know rv32imcv. Hint: gcc 14 or later"
    )
    with pytest.raises(BuildError, match=wanted):
        choose_toolchain("gcc", CORE)
    with pytest.raises(BuildError, match="pip install ziglang, or gcc 14 or later"):
        choose_toolchain("auto", CORE)
