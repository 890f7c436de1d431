"""What a sweep says: rows and their figures, what is wrong before it begins, rows that
fail, the front; on the command line, too."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from pybuild.cli import main
from pybuild.errors import BuildError, UsageError
from pybuild.sweeps.front import front
from pybuild.sweeps.sweep import Swept
from tests.sweeps.networks import network, project
from tests.toolchains import ROOT, require

DIGITS = ROOT / "examples" / "digits"


def swept(what: dict[str, Any], out: Path) -> Swept:
    return pybuild.sweep(what, out, executor=ThreadPoolExecutor(1))


def written(found: Swept) -> list[dict[str, Any]]:
    return [json.loads(line) for line in found.table.read_text().splitlines()]


def test_figures_are_those_of_a_build(tmp_path: Path) -> None:
    file = DIGITS / "digits_int8.tflite"
    axes = {"target": ["cortex-m0", "cortex-m4"], "optimise": ["size", "speed"]}
    found = swept(project(file, axes), tmp_path)
    assert written(found) == list(found.rows) and len(found.rows) == 4
    for row in found.rows:
        report = pybuild.build(file, name="tiny", **row["options"]).report
        ram, flash = report.ram, report.flash
        code = sum(piece.bytes for piece in report.code)
        assert row["ram"] == ram.arena + ram.instance
        assert row["flash"] == flash.weights + flash.tables + code
        spent = sum(kernel.instructions for kernel in report.kernels)
        assert row["instructions"] == spent and row["macs"] == report.macs
        assert row["command"] == report.command
        page = (tmp_path / row["report"]).read_text()
        assert page.count("</script>") == 4 and len(page) < 100_000
    assert [row["options"] for row in found.rows][1] == {
        "target": "cortex-m0", "optimise": "speed"
    }  # fmt: skip


def test_quantisation_search(tmp_path: Path) -> None:
    """What a calibration and layers in int16 cost, and what they lose."""
    axes = {
        "quantise": str(DIGITS / "digits_calibration.npz"),
        "int16": [[], ["conv"]],
    }
    what = project(DIGITS / "digits_f32.onnx", axes)
    what["sweeps"]["float"] = {"data": str(DIGITS / "digits_calibration.npz")}
    found = swept(what, tmp_path)
    assert not found.failed and len(found.rows) == 3
    accuracy = {json.dumps(row["options"]): row["accuracy"] for row in found.rows}
    assert all(0.9 < each <= 1 for each in accuracy.values())
    errors = [row["error"] for row in found.rows]
    assert errors[1] < errors[0], "int16 loses less"
    assert errors[2] is None and found.rows[2]["ram"] > found.rows[0]["ram"]
    assert found.front("ram", "error") == found.rows[:2]


def test_accuracy_by_the_build_s_own_kernels(tmp_path: Path) -> None:
    with np.load(DIGITS / "digits_calibration.npz") as data:
        image, labels = data["image"].reshape(-1, 8, 8, 1), data["labels"]
    np.savez(tmp_path / "test.npz", image=image[:40], labels=labels[:40])
    axes = {"data": str(tmp_path / "test.npz"), "target": ["cortex-m4"]}
    (row,) = swept(project(DIGITS / "digits_int8.tflite", axes), tmp_path).rows
    library = pybuild.build(DIGITS / "digits_int8.tflite", target="cortex-m4")
    result = pybuild.check(library, tmp_path / "test.npz", backends=["llvm"])
    assert result.classes is not None and 30 < result.classes.right("llvm") < 40
    assert row["accuracy"] == result.classes.right("llvm") / 40


def test_boards_count(tmp_path: Path) -> None:
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    file = DIGITS / "digits_int8.tflite"
    what = project(file, {"on": ["host", "mps2-an386"], "optimise": "size"})
    here, there = swept(what, tmp_path).rows
    assert (here["board"], here["target"], here["cycles"]) == (None, "generic", None)
    assert (there["board"], there["target"]) == ("mps2-an386", "cortex-m4")
    library = pybuild.build(file, name="tiny", target="cortex-m4", optimise="size")
    device = open_device("mps2-an386", core="cortex-m4", optimise="size")
    counted = bench_on_board(device, library)
    assert there["instructions"] == counted.instructions
    assert there["cycles"] == counted.cycles
    flash = counted.flash
    assert there["flash"] == flash.weights + flash.tables + flash.kernels
    assert there["ram"] == counted.ram.arena + counted.ram.instance
    assert '"board":"mps2-an386"' in (tmp_path / there["report"]).read_text()


def test_what_fails_is_a_row(tmp_path: Path) -> None:
    """One build of three; a limit is found again without building."""
    what = project(network(tmp_path), {"ram-limit": [8, "1K", "2K"]})
    found = swept(what, tmp_path / "out")
    (failed,) = found.failed
    assert failed["limit"] and "the limit is 8" in failed["problems"][0]["what"]
    assert failed["ram"] is None and failed["report"] is None
    assert found.rows[0]["key"] == failed["key"]
    assert swept(what, tmp_path / "out").built == 0


def test_a_file_that_changes_meanwhile_fails_and_is_not_kept(tmp_path: Path) -> None:
    file = network(tmp_path)
    what = project(file, {"target": ["cortex-m3", "cortex-m4"]})
    data = file.read_bytes()

    def progress(done: int, of: int) -> None:
        if file.read_bytes() == data:
            file.write_bytes(data.replace(b"\x04tiny", b"\x04tinz"))

    from pybuild.sweeps import build

    build._models.clear()
    pool = ThreadPoolExecutor(1)
    found = pybuild.sweep(what, tmp_path / "out", executor=pool, progress=progress)
    assert [row["problems"][0]["what"] for row in found.rows] == [
        "has changed since the sweep began"
    ] * 2
    file.write_bytes(data)
    assert swept(what, tmp_path / "out").built == 2


def test_a_damaged_entry_is_built_again(tmp_path: Path) -> None:
    what = project(network(tmp_path), {"target": ["cortex-m3", "cortex-m4"]})
    first = swept(what, tmp_path / "out")
    one, other = sorted((tmp_path / "out" / "builds").glob("*.json"))
    one.write_text(one.read_text()[:40])
    other.with_suffix(".html").unlink()
    again = swept(what, tmp_path / "out")
    assert again.built == 2 and again.rows == first.rows


# ---- what is wrong ------------------------------------------------------------

WRONG = """\
[models.tiny]
file = "tiny.onnx"
[models.gone]
file = "gone.onnx"
[sweeps.all]
target = ["cortex-m4", "cortex-m9"]
optimiser = ["size"]
models = ["tiny", "tinny"]
ram-limit = []
"""
LATER = """\
[models.tiny]
file = "tiny.onnx"
[models.gone]
file = "gone.onnx"
[sweeps.all]
push = [[], "y"]
int16 = ["a"]
[sweeps.samples]
models = ["tiny"]
quantise = ["none.npz"]
labels = "x.npy"
[sweeps.board]
models = ["tiny"]
on = ["host", "no-board"]
"""


def test_all_that_is_wrong_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network(tmp_path)
    Path("crt.toml").write_text(WRONG)
    assert main(["sweep"]) == 64
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(". Hint")[0] for line in lines] == [
        "crt.toml:6: target: 'cortex-m9' is not known",
        "crt.toml:7: unknown key 'optimiser'",
        "crt.toml:8: there is no model 'tinny'",
        "crt.toml:9: 'ram-limit' has no value",
    ]
    Path("crt.toml").write_text(LATER)
    assert main(["sweep"]) == 2
    lines = capsys.readouterr().err.splitlines()
    told = [line.partition(". Hint")[0] for line in lines]
    assert told == [
        "crt.toml:6: push: there is no 'y'",
        "crt.toml:7: int16: is for quantise, and 'tiny' has none",
        "gone.onnx: cannot be read (No such file or directory)",
        "crt.toml:7: int16: is for quantise, and 'gone' has none",
        "crt.toml:10: quantise: none.npz cannot be read (no such file or directory)",
        "crt.toml:11: labels: x.npy cannot be read (no such file or directory)",
        "crt.toml:11: labels: needs data",
        "crt.toml:14: on: there is no board 'no-board'",
    ]
    assert not Path("build").exists()


def test_words_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no sweep"):
        pybuild.sweep({"models": {"a": {"file": "a.onnx"}}})
    with pytest.raises(UsageError, match="takes workers, an executor or a scheduler"):
        pybuild.sweep({}, workers=1, scheduler="tcp://x")
    with pytest.raises(UsageError, match=r"project.sweeps.all.target: target: 'z80'"):
        pybuild.sweep(project(tmp_path / "a.onnx", {"target": "z80"}))
    found = swept(project(network(tmp_path), {}), tmp_path / "out")
    with pytest.raises(BuildError, match="there is no 'size'"):
        found.front("size")


def test_without_dask_its_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("pybuild.sweeps.cluster.import_module", refuse)
    with pytest.raises(BuildError, match="pip install distributed"):
        pybuild.sweep(
            project(network(tmp_path), {}), tmp_path / "o", scheduler="tcp://"
        )


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.toolchains import require_module

    require_module("distributed")
    monkeypatch.setattr("pybuild.sweeps.cluster._SECONDS", 0.2)
    what = project(network(tmp_path), {})
    with pytest.raises(UsageError, match=r"nobody answers at tcp://127\.0\.0\.1:1 "):
        pybuild.sweep(what, tmp_path / "out", scheduler="tcp://127.0.0.1:1")


# ---- the front ----------------------------------------------------------------


def test_the_front_is_what_no_other_beats() -> None:
    rng = np.random.default_rng(3)
    rows = [
        {"key": str(i), "model": "ab"[i % 2], "problems": [], "ram": int(ram),
         "flash": int(flash), "accuracy": None if i == 7 else float(good)}
        for i, (ram, flash, good) in enumerate(rng.integers(0, 12, (60, 3)))
    ]  # fmt: skip
    for measures in (("ram",), ("ram", "flash"), ("ram", "flash", "accuracy")):
        for across in (False, True):
            wanted = by_pairs(rows, measures, across)
            assert wanted and front(rows, measures, across) == wanted


def by_pairs(
    rows: list[dict[str, Any]], measures: tuple[str, ...], across: bool
) -> list[dict[str, Any]]:
    """Each against each."""
    known = [row for row in rows if all(row[m] is not None for m in measures)]

    def beats(one: dict[str, Any], other: dict[str, Any]) -> bool:
        pairs = [(one[m], other[m]) for m in measures if m != "accuracy"]
        if "accuracy" in measures:
            pairs.append((-one["accuracy"], -other["accuracy"]))
        rivals = across or one["model"] == other["model"]
        return rivals and all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    return [row for row in known if not any(beats(other, row) for other in known)]


# ---- on the command line ------------------------------------------------------


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network(tmp_path)
    file = tmp_path / "crt.toml"
    file.write_text(
        '[sweep]\nworkers = 1\nout = "found"\n[models.tiny]\nfile = "tiny.onnx"\n'
        '[sweeps.all]\ntarget = ["cortex-m0", "cortex-m4"]\nram-limit = [false, 8]\n'
    )
    assert main(["sweep", str(file), "--json"]) == 3
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["built"], facts["failed"]) == (4, 4, 2)
    assert facts["table"] == str(tmp_path / "found" / "sweep.jsonl")
    rows = [json.loads(line) for line in Path(facts["table"]).read_text().splitlines()]
    assert [row for row in rows if row in facts["front"]] == facts["front"]
    assert main(["sweep", str(file)]) == 3
    said = capsys.readouterr().out
    assert "builds 4: 0 made now, 4 were there; 2 failed" in said
    assert (
        "failed tiny target=cortex-m0 ram-limit=8: the smallest arena found has" in said
    )
    assert main(["sweep", str(file), "--scheduler", "x", "--workers", "2"]) == 64
    assert main(["sweep", str(tmp_path / "none.toml")]) == 64
    assert "none.toml: cannot be read" in capsys.readouterr().err
