"""A commit is held to what `./dev check` runs, and nothing is fetched for it."""

from __future__ import annotations

import re

from tests.toolchains import ROOT


def test_hooks_call_dev_check() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"entry: (.*)", text) == ["./dev check"]
    assert re.findall(r"repo: (.*)", text) == ["local"]
    dev = (ROOT / "dev").read_text()
    assert re.search(r"^check\) .*\bcheck ;;$", dev, re.MULTILINE)
