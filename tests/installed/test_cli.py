"""The command line: exit codes, JSON keys, what is written and what is not."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest

from pybuild.cli import main
from pybuild.cli.output import progress
from pybuild.cli.parser import parser
from pybuild.options.kinds import SIZE
from tests.frontends.onnx import models as onnx_models

ROOT = Path(__file__).resolve().parents[2]
INT8 = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
FLOAT = str(ROOT / "examples" / "digits" / "digits_f32.onnx")

Capture = pytest.CaptureFixture[str]


def crt(capture: Capture, *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON and messages of a verb run with --json."""
    code = main([*words, "--json"])
    out, err = capture.readouterr()
    return code, json.loads(out), err


def are_times(layers: list[dict[str, Any]]) -> bool:
    """What the clock costs is taken off: a layer of nanoseconds may come to 0."""
    seconds = [layer["seconds"] for layer in layers]
    return min(seconds) >= 0 < max(seconds)


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["build", INT8],
        ["inspect"],
        ["inspect", INT8, "--ram-limit", "much"],
        ["inspect", INT8, "--name=--"],
        ["check", INT8, "--samples", "0"],
        ["check", INT8, "--backend", "fortran"],
        ["inspect", INT8, "--input-dim", "n"],
        ["inspect", INT8, "--layout", "image=hwc"],
        ["inspect", INT8, "--json", "--no-such-option"],
    ],
)
def test_usage_is_64_and_prints_nothing(words: list[str], capsys: Capture) -> None:
    assert main(words) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(("crt", "--")) and err.count("\n") == 1


@pytest.mark.parametrize("verb", ["inspect", "build", "check", "bench"])
def test_every_verb_takes_the_options_of_build(verb: str, capsys: Capture) -> None:
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    options = ["--name", "--target", "--ram-limit", "--rounding", "--input"]
    options += ["--optimise", "--input-dim", "--layout", "--json"]
    assert [o for o in options if o not in shown] == []


@pytest.mark.parametrize(
    ("text", "bytes"),
    [("4096", 4096), ("64K", 65536), ("64 KiB", 65536), ("1M", 1048576), ("2kb", 2048)],
)
def test_size(text: str, bytes: int) -> None:
    assert SIZE.read(text) == bytes


def test_every_option_says_what_it_does() -> None:
    assert not list(_unexplained(parser()))


def _unexplained(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:
        if isinstance(action.choices, dict):
            for verb in action.choices.values():
                yield from _unexplained(verb)
        elif not action.help:
            yield f"{command.prog}: {action.option_strings or action.dest}"


def test_help_does_not_import_the_compiler() -> None:
    """It must come at once."""
    code = "import sys; from pybuild.cli import main; main(['--help']);"
    code += "print([m for m in ('onnx', 'llvmlite', 'rich') if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


def test_inspect(capsys: Capture) -> None:
    code, facts, err = crt(capsys, "inspect", INT8)
    assert (code, err, facts["problems"]) == (0, "", [])
    assert facts["model"] == "digits_int8.tflite"
    assert [layer["op"] for layer in facts["layers"]][:3] == [
        "conv2d",
        "depthwise_conv2d",
        "conv2d",
    ]
    assert facts["macs"] == 64 * 9 * 8 + 64 * 9 * 8 + 64 * 8 * 16 + 256 * 10
    (image,) = facts["inputs"]
    assert (image["name"], image["shape"], image["dtype"]) == (
        "image",
        [1, 8, 8, 1],
        "int8",
    )


def test_inspect_prints_a_table(capsys: Capture) -> None:
    assert main(["inspect", INT8]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "depthwise_conv2d" in out
    assert "alive at once" in out


def test_build_writes_what_it_reports(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    code, facts, _ = crt(capsys, "build", INT8, "-o", str(out), "--name", "kws")
    assert code == 0
    assert list(facts)[:6] == ["name", "ram", "flash", "macs", "inputs", "outputs"]
    assert list(facts["ram"]) == ["arena", "instance", "lower_bound", "unpacked"]
    removed = ["removed_channels", "removed"]
    assert list(facts["flash"]) == ["weights", "tables", "stages", *removed]
    assert list(facts["layers"][0]) == ["name", "short", "op", "macs", "out_bytes"]
    report = json.loads((out / "report.json").read_text())
    assert len(report.pop("example")["sha256"]) == 64
    assert report == facts
    made = tree(out)
    assert {"kws.h", "kws.c", "kws_weights.c", "example/main.c"} <= set(made)
    assert b"#define KWS_ARENA_BYTES" in made["kws.h"]
    assert not [p for p in tmp_path.iterdir() if p != out]


def test_build_again_writes_the_same_bytes(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(["build", INT8, "-o", str(out)]) == 0
    (out / "build").mkdir()
    (out / "build" / "mine.o").write_bytes(b"kept")
    first = tree(out)
    assert main(["build", INT8, "-o", str(out)]) == 0
    assert tree(out) == first


def test_a_build_with_other_options_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    out, alone = tmp_path / "out", tmp_path / "alone"
    first = ["--params", "replaceable", "--names", "ids"]
    assert main(["build", INT8, "-o", str(out), "--name", "d", *first]) == 0
    assert {"d_params.c", "d.names.json"} <= set(tree(out))
    (out / "d_mine.c").write_text("mine")
    assert main(["build", INT8, "-o", str(out), "--name", "d"]) == 0
    assert main(["build", INT8, "-o", str(alone), "--name", "d"]) == 0
    left = {n for n in set(tree(out)) - set(tree(alone)) if not n.startswith("crt/")}
    assert left == {"d_mine.c"}


def test_build_leaves_other_folders_alone(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    code, facts, err = crt(capsys, "build", INT8, "-o", str(tmp_path))
    assert code == 2
    assert "--force" in err
    assert facts["error"][0]["hint"] == "another folder, or --force"
    assert set(tree(tmp_path)) == {"mine.txt"}
    assert main(["build", INT8, "-o", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "mine.txt").read_text() == "precious"
    assert (tmp_path / "digits_int8.h").is_file()


def test_build_of_several(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    words = ["build", INT8, FLOAT, "-o", str(out), "--name", "digits_f32=second"]
    words += ["--name", f"{INT8}=first"]
    code, facts, _ = crt(capsys, *words, "--name", "digits")
    assert code == 0
    assert facts["name"] == "digits"
    assert [m["name"] for m in facts["models"]] == ["first", "second"]
    report = json.loads((out / "report.json").read_text())
    assert len(report.pop("example")["sha256"]) == 64
    assert report == facts
    files = {"digits.h", "digits.c", "digits_kernels.c", "digits_weights.c"}
    assert files | {"first.h", "first.c", "second.c"} <= set(tree(out))
    assert not {"first_weights.c", "second_weights.c"} & set(tree(out))
    first = tree(out)
    assert main([*words, "--name", "digits"]) == 0  # over its own earlier tree
    assert tree(out) == first
    assert "sharing saves" in capsys.readouterr().out


def test_several_in_one_memory_within_a_limit(tmp_path: Path, capsys: Capture) -> None:
    words = ["build", INT8, FLOAT, "-o", str(tmp_path / "out"), "--ram-limit", "6K"]
    words += ["--plan", "whole"]
    code, facts, _ = crt(capsys, *words)
    assert code == 3
    assert "'digits_int8' 1536, 'digits_f32' 6144 bytes" in facts["error"][0]["what"]
    assert not (tmp_path / "out").exists()
    code, facts, _ = crt(capsys, *words, "--exclusive", "digits_int8,digits_f32")
    assert (code, facts["ram"]["arena"]) == (0, 6144)
    assert facts["exclusive"] == [["digits_int8", "digits_f32"]]


def test_one_bad_model_of_several_writes_none(tmp_path: Path, capsys: Capture) -> None:
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(b"not a model")
    out = tmp_path / "out"
    code, facts, err = crt(capsys, "build", INT8, str(bad), INT8, "-o", str(out))
    assert code == 2
    assert len(facts["error"]) == len(err.splitlines()) == 2
    assert not out.exists()


def test_ram_limit_is_3_and_writes_nothing(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    words = ["build", INT8, "-o", str(out), "--ram-limit", "300"]
    code, facts, err = crt(capsys, *words)
    assert code == 3
    assert "alive at the peak" in facts["error"][0]["what"]
    assert "alive at the peak" in err
    assert not out.exists()


def test_a_limit_gets_the_fastest_plan_that_fits(capsys: Capture) -> None:
    rows = ("inspect", INT8)
    _, whole, _ = crt(capsys, *rows, "--plan", "whole")
    _, least, _ = crt(capsys, *rows)
    assert least["ram"]["arena"] < whole["ram"]["arena"]
    assert {row["placement"] for row in least["tensors"]} >= {"ring", "whole"}
    assert max(stage["steps"] for stage in least["stages"]) > 1
    limit = str(whole["ram"]["arena"])
    _, fits, _ = crt(capsys, *rows, "--ram-limit", limit)
    assert fits["ram"]["arena"] <= whole["ram"]["arena"]
    assert all(stage["steps"] == 1 for stage in fits["stages"])
    code, facts, _ = crt(capsys, *rows, "--ram-limit", "300")
    assert code == 3 and "alive at the peak" in facts["error"][0]["what"]


def test_ram_curve_is_printed_and_drawn(tmp_path: Path, capsys: Capture) -> None:
    drawing = tmp_path / "curve.svg"
    code, facts, _ = crt(capsys, "inspect", INT8, "--ram-curve", str(drawing))
    points = facts["ram_curve"]
    assert 0 < facts["ram_bound"] <= points[0]["ram"]
    assert code == 0 and len(points) > 1
    assert points[0]["ram"] <= facts["ram"]["arena"] + facts["ram"]["instance"]
    assert all(a["ram"] < b["ram"] for a, b in pairwise(points))
    assert all(a["instructions"] >= b["instructions"] for a, b in pairwise(points))
    assert drawing.read_text().count(' plan"') == len(points)
    assert ElementTree.parse(drawing).getroot().tag.endswith("svg")
    assert main(["inspect", INT8, "--ram-curve"]) == 0
    assert f"{points[0]['ram']:,}" in capsys.readouterr().out


def test_keep_costs_at_least_as_much(capsys: Capture) -> None:
    _, reuse, _ = crt(capsys, "inspect", INT8)
    _, keep, _ = crt(capsys, "inspect", INT8, "--input", "keep")
    _, least, _ = crt(capsys, "inspect", INT8, "--input", "consumable")
    assert least["ram"]["arena"] <= reuse["ram"]["arena"]
    assert keep["ram"]["arena"] >= reuse["ram"]["arena"]


@pytest.mark.parametrize("model", [INT8, FLOAT])
def test_check_against_numpy(model: str, capsys: Capture) -> None:
    words = ["check", model, "--ref", "numpy", "--samples", "8", "--per-layer"]
    code, facts, _ = crt(capsys, *words, "--backend", "llvm")
    assert (code, facts["ok"], facts["samples"]) == (0, True, 8)
    assert facts["reference"].startswith("numpy")
    llvm = facts["backends"]["llvm"]
    assert (llvm["mismatches"], llvm["first_layer"]) == (0, None)
    assert facts["tensors"] >= 5


def test_check_finds_another_rounding(capsys: Capture) -> None:
    """One rounding against a reference that rounds twice: exit 1, with a layer."""
    words = ["check", INT8, "--rounding", "single", "--ref", "tflm", "--per-layer"]
    code, facts, _ = crt(capsys, *words, "--backend", "llvm")
    assert (code, facts["ok"], facts["rounding"]) == (1, False, "single")
    llvm = facts["backends"]["llvm"]
    assert llvm["mismatches"] > 0
    assert llvm["max_abs"] >= 1
    assert llvm["first_layer"] in {"conv", "depthwise", "pointwise", "scores"}


def test_bench(capsys: Capture) -> None:
    words = ["bench", INT8, "--on", "host", "--runs", "3"]
    code, facts, _ = crt(capsys, *words)
    assert code == 0
    assert (facts["board"], facts["runs"]) == ("host", 3)
    assert list(facts["seconds"]) == ["min", "median", "mean", "max", "std"]
    keys = ["name", "short", "op", "macs", "seconds"]
    assert all(list(x) == keys for x in facts["layers"])
    assert facts["seconds"]["min"] > 0
    assert are_times(facts["layers"])


def test_rows_are_pushed_by_run_debug_and_bench(
    tmp_path: Path, capsys: Capture
) -> None:
    """On the plan that holds no whole input: the bits of the one that does."""
    given = tmp_path / "in.npz"
    np.savez(given, image=np.arange(-32, 32, dtype=np.int8).reshape(1, 8, 8, 1))
    facts = {}
    for verb, *words in (["run"], ["debug", "--ref", "litert"], ["bench"]):
        words += ["--data", str(given)] if verb != "bench" else ["--runs", "3"]
        codes = []
        for push in ([], ["--push", "image"]):
            code, facts[verb, bool(push)], _ = crt(capsys, verb, INT8, *words, *push)
            codes.append(code)
        assert codes == [0, 0]
    for verb in ("run", "debug"):
        whole, pushed = facts[verb, False], facts[verb, True]
        assert {**pushed, "seconds": 0} == {**whole, "seconds": 0}
    whole, pushed = facts["bench", False], facts["bench", True]
    assert pushed["seconds"]["min"] > 0
    assert are_times(pushed["layers"])
    names = [[row["name"] for row in one["layers"]] for one in (whole, pushed)]
    assert names[0] == names[1]


def test_an_output_that_cannot_be_written(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("here")
    out = str(tmp_path / "file" / "out")
    code, facts, err = crt(capsys, "build", INT8, "-o", out)
    assert code == 2
    assert err == f"{tmp_path / 'file'}: is a file. Hint: give a folder\n"
    assert facts["error"][0]["what"] == "is a file"


def test_an_open_dimension_and_a_layout_from_the_command_line(
    tmp_path: Path, capsys: Capture
) -> None:
    nodes = [("Conv", ["x", "w"], ["y"], {})]
    given = {"x": np.zeros((1, 3, 4, 5), np.float32)}
    weights = {"w": np.ones((2, 3, 1, 1), np.float32)}
    whole = onnx.load_from_string(onnx_models.model(nodes, given, ["y"], weights))
    for value in (*whole.graph.input, *whole.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    path = tmp_path / "open.onnx"
    path.write_bytes(whole.SerializeToString())
    words = ["inspect", str(path), "--input-dim", "batch=2", "--layout", "x=nhwc"]
    code, facts, err = crt(capsys, *words)
    assert (code, err) == (0, "")
    assert facts["inputs"][0]["shape"] == [2, 4, 5, 3]
    assert facts["outputs"][0]["shape"] == [2, 2, 4, 5]
    assert facts["macs"] == 2 * 4 * 5 * 3 * 2


@pytest.mark.parametrize(
    ("terminal", "kind", "shown"),
    [(True, "xterm", 2), (True, "dumb", 1), (False, "xterm", 0)],
)
def test_long_work_is_shown_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: bool,
    kind: str,
    shown: int,
) -> None:
    """shown: 2 as a bar that moves, 1 as a line where the cursor cannot."""
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.05)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", kind)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    with progress.working("counting") as update:
        update(1, 2)
        time.sleep(2)  # under load the first bar is long in coming
        update(2, 2)
    said = capsys.readouterr().err
    assert ("counting" in said) is (shown > 0)
    assert (said == "counting ...\n") is (shown == 1)
