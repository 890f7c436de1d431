"""Each bad input of messages.toml: its exact message, exit code, nothing written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pybuild.cli import main
from tests.failing.bad import MAKERS
from tests.failing.names import filled

CASES = tomllib.loads((Path(__file__).parent / "messages.toml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case: dict[str, Any] = CASES[name]
    model = MAKERS[case["model"]](tmp_path)
    more = [str(MAKERS[name](tmp_path)) for name in case.get("more", [])]
    before = sorted(tmp_path.rglob("*"))
    words = [case.get("verb", "build"), str(model), *more, "--json"]
    words += [w.replace("TMP", str(tmp_path)) for w in case.get("options", [])]
    if words[0] == "build":
        words += ["-o", str(tmp_path / "out")]
    assert main(words) == case["exit"]
    out, err = capsys.readouterr()
    assert err.replace(str(tmp_path), "TMP").splitlines() == filled(case["message"])
    assert len(json.loads(out)["error"]) == len(case["message"])
    assert sorted(tmp_path.rglob("*")) == before


def test_every_bad_input_is_used() -> None:
    used = {name for c in CASES.values() for name in (c["model"], *c.get("more", []))}
    assert used == set(MAKERS)
