"""The folder of `crt build --evidence`: whole, the same bytes each time, and true."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.evidence.page import FILES
from pybuild.evidence.write import LIST, Evidence, evidence, write
from pybuild.library import Library
from tests.golden.networks import conv_int8
from tests.toolchains import ROOT, require_module

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
TARGET = ["--target", "cortex-m4"]


@pytest.fixture(scope="module")
def small() -> Library:
    return conv_int8().model().build()


@pytest.fixture(scope="module")
def made(small: Library) -> Evidence:
    return evidence(small)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_two_runs_in_two_folders_give_the_same_bytes(tmp_path: Path) -> None:
    require_module("ai_edge_litert")
    samples = np.random.default_rng(2).integers(-128, 127, (4, 8, 8, 1), np.int8)
    np.save(tmp_path / "four.npy", samples)
    folders = [tmp_path / "one", tmp_path / "deep" / "er" / "two"]
    trees = [tmp_path / "first", tmp_path / "second"]
    for folder, tree in zip(folders, trees, strict=True):
        words = [str(DIGITS), *TARGET, "-o", str(tree)]
        words += ["--data", str(tmp_path / "four.npy"), "--evidence", str(folder)]
        assert main(["build", *words]) == 0
    one, two = map(contents, folders)
    assert one == two and set(one) == {*FILES, "evidence.md"}
    said = b"".join(one.values())
    assert str(tmp_path).encode() not in said
    for name, folder in (("evidence.sha256", folders[0]), ("tree.sha256", trees[0])):
        lines = [line.split("  ") for line in one[name].decode().splitlines()]
        assert len(lines) >= len(one) - 1
        for digest, path in lines:
            assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == digest
    facts = {n: json.loads(t) for n, t in one.items() if n.endswith(".json")}
    compared = facts["comparison.json"]
    four = hashlib.sha256((tmp_path / "four.npy").read_bytes()).hexdigest()
    assert compared["samples"] == 4 and compared["data"] == {"four.npy": four}
    assert all(t["elements"] == 40 for t in compared["backends"].values())
    machine = facts["bounds.json"]["machine"]
    if "reason" not in machine:
        most = machine["worst"]["instructions"]
        assert machine["instructions"] <= most <= 1.05 * machine["instructions"]
        assert machine["stack"] <= machine["stack_bound"]
    parts = {part["name"]: part for part in facts["sbom.cdx.json"]["components"]}
    assert {"pybuild-crt", "crt", "digits_int8.tflite", "digits_int8.c"} <= set(parts)
    assert any("numpy" in part["name"] and part["purl"] for part in parts.values())
    digest = hashlib.sha256(DIGITS.read_bytes()).hexdigest()
    assert parts["digits_int8.tflite"]["hashes"][0]["content"] == digest


def test_what_is_not_known_is_said(made: Evidence) -> None:
    said = made.files["limits.json"].decode()
    assert "the target is any CPU" in said and "no samples were given" in said
    assert made.ok and "DIFFER" not in said


def test_a_difference_is_said(small: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = pybuild.check

    def worse(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        object.__setattr__(found, "ok", False)
        return found

    monkeypatch.setattr("pybuild.evidence.write.check", worse)
    found = evidence(small)
    assert not found.ok and b"Values DIFFER" in found.files["limits.json"]


def test_where_it_fails_nothing_is_changed(
    made: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "filed"
    write(folder, Evidence(True, {LIST: b"", "evidence.md": b"before"}))
    assert [path.name for path in tmp_path.iterdir()] == ["filed"]
    (folder / LIST).write_bytes(b"0" * 64 + b"  evidence.md\n")
    before, real, calls = contents(folder), os.rename, []

    def failing(one: Path, other: Path) -> None:
        calls.append(one)
        if len(calls) == 2:  # the old one is aside, the new one does not come
            raise OSError(28, "No space left on device")
        real(one, other)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(BuildError, match="no space left"):
        write(folder, made)
    assert len(calls) == 3 and contents(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["filed"]
    monkeypatch.undo()
    write(folder, made)
    assert contents(folder) == dict(made.files)
    assert [path.name for path in tmp_path.iterdir()] == ["filed"]


def test_files_of_the_user_are_not_written_over(made: Evidence, tmp_path: Path) -> None:
    (tmp_path / "filed").mkdir()
    write(tmp_path / "filed", made)
    (tmp_path / "filed" / "notes.txt").write_text("mine")
    with pytest.raises(BuildError, match="holds other files"):
        write(tmp_path / "filed", made)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BuildError, match="is a file"):
        write(tmp_path / "file" / "within", made)
    words = [str(DIGITS), "-o", str(tmp_path / "t"), "--evidence"]
    assert main(["build", *words, str(tmp_path / "filed")]) == 2
    assert not (tmp_path / "t").exists()


def test_several_models_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(DIGITS), f"{DIGITS.parent}/digits_f32.onnx", "-o", str(tmp_path / "t")]
    assert main(["build", *words, "--evidence", str(tmp_path / "e")]) == 64
    assert "--evidence: is for one model" in capsys.readouterr().err
