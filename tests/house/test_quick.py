"""What `./dev test --quick` leaves out is there, and files find the tests near them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import everything
from tests.concern import ROOT, TESTS, concern, source
from tests.near import quick_run, sampled
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
    near = {path.name for path in concern([TESTS / "mutate" / "handmade.py"]).files}
    assert {"test_mutations.py", "test_quick.py"} <= near


def _ran(near: str, *names: str, slow: tuple[str, ...] = ()) -> list[str]:
    """Of the tests of these names, those that a quick run has, in its order."""
    gone: list[Any] = []
    config: Any = SimpleNamespace(
        getoption=lambda _: near,
        hook=SimpleNamespace(pytest_deselected=lambda items: gone.extend(items)),
    )
    items: list[Any] = [
        SimpleNamespace(
            nodeid=name,
            stash=pytest.Stash(),
            get_closest_marker=lambda _, name=name: name in slow or None,
        )
        for name in names
    ]
    quick_run.pytest_collection_modifyitems(config, items)
    assert len(items) + len(gone) == len(names)
    return [item.nodeid for item in items]


def test_what_is_near_is_first_and_not_left_out() -> None:
    plain, dear = (
        "tests/a/test_a.py::test_b",
        "tests/c/test_page.py::test_three_lines[d]",
    )
    assert _ran("", plain, dear) == [plain]
    assert _ran("tests/c/test_page.py", plain, dear) == [dear, plain]
    assert _ran("tests/c/test_page.py", plain, dear, slow=(dear,)) == [plain]


def test_llvm_optimises_for_a_sample_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"tests/a/test_a.py::test_b[{n}]" for n in range(2000)]
    assert 200 < sum(map(sampled.is_optimised, names)) < 300
    assert sampled.is_optimised("tests/a/test_vectoriser.py::test_b")
    plain: list[bool] = []
    monkeypatch.setattr(sampled, "plainly", plain.append)
    for name in names[:40]:
        item: Any = SimpleNamespace(nodeid=name)
        next(sampled.pytest_runtest_protocol(item))
    assert plain == [not sampled.is_optimised(name) for name in names[:40]]
    assert set(plain) == {True, False}


def test_the_sample_is_of_the_whole_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(everything, "in_tree", lambda words: ran.append(words) or 0)
    monkeypatch.setattr(everything, "with_wheel", lambda *_: 0)
    for words in ([], ["--all"], ["tests/house/test_quick.py"], ["-x"]):
        assert everything.main(words) == 0
    assert ["tests.near.sampled" in words for words in ran] == [
        True,
        False,
        False,
        True,
    ]


def test_what_changed_is_what_git_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *named, *words], cwd=tmp_path, check=True)

    monkeypatch.setattr(everything, "ROOT", tmp_path)
    assert everything.changed() == []  # no repository
    (tmp_path / "pybuild").mkdir()
    files = [tmp_path / "pybuild" / f"{n}.py" for n in range(everything.FEW + 1)]
    git("init", "-q")
    for number in (0, 1):
        files[number].write_text("a")
        git("add", ".")
        git("commit", "-q", "-m", "a")
    assert everything.changed() == [files[1]]  # the last commit's
    files[0].write_text("b")
    assert everything.changed() == [files[0]]
    for file in files:
        file.write_text("c")
    git("add", ".")
    assert everything.changed() == []  # too many
