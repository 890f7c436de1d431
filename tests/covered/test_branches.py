"""Each branch of crt's object code goes both ways in a test of tests/crt, on an
emulated Cortex-M4, or it is known why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.covered.branches import (
    COMPILER,
    NEVER,
    is_counted_here,
    measured,
    table,
)
from tests.crt.test_crt import PROGRAMS
from tests.toolchains import ROOT, absent, require, require_module


@pytest.fixture(autouse=True)
def compiler() -> None:
    require("arm-none-eabi-gcc")
    require_module("unicorn")
    if not is_counted_here():
        absent(f"arm-none-eabi-gcc is not {COMPILER}, whose branches are counted")


def test_each_branch_goes_both_ways(tmp_path: Path) -> None:
    sites = measured(PROGRAMS, tmp_path)
    assert len(sites) > 600
    assert {site.file for site in sites} >= {"graph.c", "rpc.c", "slots.h"}
    one_way = [site for site in sites if len(site.went) < 2]
    assert [site for site in one_way if not site.never] == []
    assert len(one_way) == len(NEVER)  # nothing is excused that is tested
    page = (ROOT / "docs" / "misra.md").read_text()
    assert "\n".join(table(sites)) in page


def test_what_a_test_leaves_out_is_found(tmp_path: Path) -> None:
    """Of the calls of a server the tests of frames alone do none."""
    sites = measured(["test_frame.c"], tmp_path)
    went = {len(site.went) for site in sites if site.function == "crt_rpc_do"}
    assert went == {0}
    frames = [site for site in sites if site.file == "frame.c"]
    assert sum(len(site.went) == 2 for site in frames) > len(frames) / 2
