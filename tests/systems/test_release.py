"""A release, made from a clone: one command, the same bytes each time, all checked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pybuild
from tests.toolchains import ROOT, require_module, run

CHANGES = ROOT / "changes"
OTHER = {"README.md", "template.md.jinja"}


def test_each_change_says_its_kind() -> None:
    """0022-short-words.added.md: changes/README.md"""
    known = re.compile(r"\d{4}-[a-z0-9-]+\.(added|changed|fixed|removed)\.md")
    names = {path.name for path in CHANGES.iterdir()} - OTHER
    assert [name for name in sorted(names) if not known.fullmatch(name)] == []
    for name in names:
        text = (CHANGES / name).read_text(encoding="utf-8")
        assert text.strip() and not re.search(r"(?m)^#", text), f"{name}: a heading"


def _release(clone: Path, *arguments: str) -> dict[str, bytes]:
    run([sys.executable, ".ci/release.py", *arguments], clone)
    return {path.name: path.read_bytes() for path in (clone / "dist").iterdir()}


@pytest.mark.sweep
def test_a_release(tmp_path: Path) -> None:
    for module in ("towncrier", "twine", "check_wheel_contents", "cyclonedx_py"):
        require_module(module)
    clone = tmp_path / "clone"
    run(["git", "clone", "-q", ROOT, clone])
    for key in ("user.name", "user.email"):
        run(["git", "config", key, "nobody"], clone)
    change = clone / "changes" / "9999-of-this-test.fixed.md"
    change.write_text("Nothing is **too** small.\n")
    run(["git", "add", "-A"], clone)
    run(["git", "commit", "-q", "-m", "a change"], clone)

    first = _release(clone, "9.9.9")
    assert set(first) == {
        "pybuild_crt-9.9.9.tar.gz",
        "pybuild_crt-9.9.9-py3-none-any.whl",
        "pybuild_crt-9.9.9.cdx.json",
    }
    log = (clone / "CHANGELOG.md").read_text(encoding="utf-8")
    section = log[log.index("## 9.9.9 (") : log.index("## 0.1.0")]
    assert "### Fixed\n\n- " in section and "- Nothing is **too** small." in section
    assert {path.name for path in (clone / "changes").iterdir()} == OTHER
    assert run(["git", "status", "--porcelain", "--untracked-files=no"], clone) == ""

    bill = json.loads(first["pybuild_crt-9.9.9.cdx.json"])
    parts = {part["name"]: part["version"] for part in bill["components"]}
    assert parts["pybuild-crt"] == "9.9.9" and "numpy" in parts
    assert str(tmp_path) not in json.dumps(bill) and "file:" not in json.dumps(bill)
    assert _release(clone) == first


def test_a_release_is_made_of_what_is_committed(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", clone])
    (clone / "README.md").write_text("changed\n")
    command = [sys.executable, ".ci/release.py"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a release is made of what is committed" in done.stderr
    assert not (clone / "dist").exists()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a copy of ./dev mutate")
def test_a_version_is_three_numbers(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", clone])
    command = [sys.executable, ".ci/release.py", "next"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 1 and "'next' is not a version" in done.stderr
    said = (clone / "pybuild" / "VERSION").read_text(encoding="utf-8")
    assert said.strip() == pybuild.__version__
