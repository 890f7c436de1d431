"""What `./dev test --quick` leaves out is there, and files find the tests near them."""

from __future__ import annotations

import re

from tests.concern import ROOT, TESTS, concern, source
from tests.quick import left_out


def test_each_test_that_is_left_out_exists() -> None:
    there = {
        f"{path.name}::{name}"
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"(?m)^def (test_\w+)\(", path.read_text())
    }
    assert left_out() - there == set()


def test_a_room_is_meant_by_its_name() -> None:
    assert source("plan") == ROOT / "pybuild" / "plan"
    assert source("tests") is None and source("no_such_room") is None
    assert source("tests/house/test_quick.py") is None


def test_a_table_has_the_tests_beside_it() -> None:
    table = TESTS / "ops" / "eltwise.toml"
    assert source("tests/ops/eltwise.toml") == table
    assert TESTS / "ops" / "test_backends.py" in concern([table]).files


def test_mutated_and_importing_tests_are_near() -> None:
    found = concern([ROOT / "crt" / "src" / "run.c"])
    assert found.files[0].name == "test_crt.py" and found.named
    near = {path.name for path in concern([TESTS / "mutate.py"]).files}
    assert {"test_mutations.py", "test_quick.py"} <= near
