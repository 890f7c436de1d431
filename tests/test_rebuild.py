"""A tree says how it was made, and is made again from that."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.options.option import keywords, options_in
from pybuild.options.table import BuildOptions, LoadOptions, QuantiseOptions

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("digits_int8.tflite", "digits_f32.onnx", "digits_calibration.npz"):
        shutil.copy(DIGITS / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def again(capsys: Capture, folder: str, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["rebuild", folder, "--json", *words])
    out, _ = capsys.readouterr()
    return code, json.loads(out)


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


OPTIONS = [
    ["digits_int8.tflite"],
    ["digits_int8.tflite", "--target", "cortex-m4", "--ram-limit", "64K",
     "--region", "dtcm=1K:fast+weights", "--region", "sram=96K", "--names", "ids"],
    ["digits_int8.tflite", "--params", "dense_w", "--lazy", "scores", "--name", "d"],
    ["digits_int8.tflite", "--device", "1=cortex-m4", "--place", "conv=1"],
    ["digits_f32.onnx", "--layout", "image=nhwc", "--plan", "whole"],
    ["digits_f32.onnx", "--quantise", "digits_calibration.npz", "--no-equalise",
     "--no-fit-weights", "--keep-float", "conv"],
    ["digits_int8.tflite", "digits_f32.onnx", "--exclusive", "digits_int8,digits_f32",
     "--plan", "whole", "--optimise", "size"],
]  # fmt: skip


@pytest.mark.parametrize("words", OPTIONS, ids=range(len(OPTIONS)))
def test_the_same_bytes(words: list[str], here: Path, capsys: Capture) -> None:
    assert main(["build", *words, "-o", "out"]) == 0
    first = tree(here / "out")
    capsys.readouterr()
    code, facts = again(capsys, "out")
    assert (code, facts["equal"], facts["changed"], facts["wrote"]) == (
        0, True, [], False,
    )  # fmt: skip
    shutil.rmtree("out/crt")
    (here / "out" / "Makefile").unlink()
    code, facts = again(capsys, "out")
    assert code == 1 and facts["wrote"] and "Makefile" in facts["changed"]
    assert tree(here / "out") == first
    text = (here / "out" / "report.json").read_text()
    assert str(here) not in text + "".join(map(str, first.values()))


def test_every_option_is_in_the_report(here: Path) -> None:
    model = pybuild.load("digits_f32.onnx")
    made = pybuild.quantise(model, "digits_calibration.npz", max_loss="50%")
    facts = made.model.build().report.to_json()["provenance"]
    for kind, key in (
        (LoadOptions, "load"), (BuildOptions, "build"), (QuantiseOptions, "quantise"),
    ):  # fmt: skip
        assert list(facts[key]) == [one.keyword for one in options_in(kind)]
    assert facts["pybuild"] == pybuild.__version__
    assert facts["model"]["file"] == "digits_f32.onnx"
    assert facts["model"]["sha256"] == model.digest and len(model.digest) == 64
    assert facts["data"]["file"] == "digits_calibration.npz"
    assert keywords(BuildOptions())["plan"] == facts["build"]["plan"]


def test_the_header_says_how(here: Path) -> None:
    words = ["digits_f32.onnx", "--quantise", "digits_calibration.npz"]
    more = ["--ram-limit", "64K", "--device", "1=cortex-m4", "--place", "*=0"]
    assert main(["build", *words, *more, "-o", "out", "--name", "d"]) == 0
    comment = (here / "out" / "d.h").read_text().partition("*/")[0]
    text = " ".join(comment.replace(" * ", " ").split())
    digest = pybuild.load("digits_f32.onnx").digest
    assert f"pybuild {pybuild.__version__} from digits_f32.onnx" in text
    assert f"(sha256 {digest})" in text
    assert (
        "Options: --quantise digits_calibration.npz --ram-limit 65536 --place '*=0' "
        "--device 1=cortex-m4." in text
    )
    assert main(["build", "digits_int8.tflite", "-o", "plain"]) == 0
    assert "Options: none." in (here / "plain" / "digits_int8.h").read_text()


def test_what_somebody_changed(here: Path, capsys: Capture) -> None:
    assert main(["build", "digits_int8.tflite", "-o", "out", "--name", "d"]) == 0
    first = tree(here / "out")
    source, example = here / "out" / "d.c", here / "out" / "example" / "main.c"
    source.write_text("changed")
    example.write_text("mine")
    capsys.readouterr()
    assert main(["rebuild", "out", "--check"]) == 1
    assert "differs  d.c (changed by hand)\n" in capsys.readouterr().out
    assert source.read_text() == "changed"
    code, facts = again(capsys, "out")
    assert (code, facts["changed"], facts["by_hand"]) == (1, ["d.c"], ["d.c"])
    assert source.read_bytes() == first["d.c"]
    assert example.read_text() == "mine"
    assert again(capsys, "out")[0] == 0


def test_another_version_and_another_option(here: Path, capsys: Capture) -> None:
    assert main(["build", "digits_int8.tflite", "-o", "out", "--name", "d"]) == 0
    report = here / "out" / "report.json"
    facts = json.loads(report.read_text())
    facts["provenance"]["pybuild"] = "0.0.1"
    report.write_text(json.dumps(facts))
    capsys.readouterr()
    assert main(["rebuild", "out", "--check"]) == 1
    now = pybuild.__version__
    assert f"made by pybuild 0.0.1, this is {now}" in capsys.readouterr().out
    facts["provenance"]["build"]["names"] = "ids"
    report.write_text(json.dumps(facts))
    code, said = again(capsys, "out")
    assert code == 1 and {"d.c", "d.h", "d.names.json"} <= set(said["changed"])
    assert (here / "out" / "d.names.json").is_file()


def test_another_model_or_none(here: Path, capsys: Capture) -> None:
    words = ["--quantise", "digits_calibration.npz", "--name", "d"]
    assert main(["build", "digits_f32.onnx", *words, "-o", "a/b/out"]) == 0
    first = tree(here / "a")
    (here / "far").mkdir()
    for name in ("digits_f32.onnx", "digits_calibration.npz"):
        shutil.move(name, here / "far" / name)
    capsys.readouterr()
    assert main(["rebuild", "a/b/out"]) == 2
    err = capsys.readouterr().err
    place = "is not here, beside the tree, or where crt.toml says."
    assert f"digits_f32.onnx: {place} Hint: --from" in err
    assert f"digits_calibration.npz: {place}" in err
    files = ["--from", "far/digits_f32.onnx", "--from", "far/digits_calibration.npz"]
    assert again(capsys, "a/b/out", *files)[0] == 0
    np.savez("a/b/digits_calibration.npz", image=np.zeros((2, 1, 8, 8), np.float32))
    shutil.copy("far/digits_f32.onnx", "a/b")
    assert main(["rebuild", "a/b/out"]) == 2
    assert "is not the file that the tree was made of" in capsys.readouterr().err
    shutil.copy("digits_int8.tflite", "a/b/digits_f32.onnx")
    assert main(["rebuild", "a/b/out"]) == 2
    (here / "a" / "b" / "digits_f32.onnx").unlink()
    (here / "a" / "b" / "digits_calibration.npz").unlink()
    assert tree(here / "a") == first


def test_where_the_project_file_says(here: Path, capsys: Capture) -> None:
    """Models and samples, from the folder of crt.toml or of pyproject.toml."""
    (here / "far").mkdir()
    for name in ("digits_f32.onnx", "digits_calibration.npz"):
        shutil.move(name, here / "far" / name)
    text = '[models.d]\nfile = "far/digits_f32.onnx"\n'
    text += 'quantise = "far/digits_calibration.npz"\n'
    Path("crt.toml").write_text(text)
    assert main(["build", "-o", "a/b/d"]) == 0
    capsys.readouterr()
    assert again(capsys, "a/b/d")[0] == 0
    shutil.copy("digits_int8.tflite", "a/b/digits_f32.onnx")  # of other bytes
    assert again(capsys, "a/b/d")[0] == 0
    Path("crt.toml").unlink()
    Path("pyproject.toml").write_text(text.replace("[models", "[tool.crt.models"))
    assert again(capsys, "a/b/d")[0] == 0


def test_a_file_that_is_given(here: Path, capsys: Capture) -> None:
    """It counts by its bytes: under another name, too; a wrong one is told."""
    assert main(["build", "digits_int8.tflite", "-o", "a/b/out"]) == 0
    shutil.move("digits_int8.tflite", "model.bin")
    digest = pybuild.load("digits_f32.onnx").digest
    capsys.readouterr()
    words = ["--from", "digits_f32.onnx"]
    assert main(["rebuild", "a/b/out", *words]) == 2
    wrong = f"digits_f32.onnx: is other bytes (sha256 {digest[:16]}) than the tree was"
    wrong += " made of: digits_int8.tflite ("
    assert wrong in capsys.readouterr().err
    assert again(capsys, "a/b/out", "--from", "model.bin")[0] == 0
    assert main(["rebuild", "a/b/out", "--from", "model.bin", *words]) == 2
    assert wrong in capsys.readouterr().err
    assert main(["rebuild", "a/b/out", "--from", "none.bin"]) == 2
    assert "none.bin: there is no such file" in capsys.readouterr().err


def test_a_file_that_is_gone(here: Path, capsys: Capture) -> None:
    assert main(["build", "digits_int8.tflite", "-o", "out", "--name", "d"]) == 0
    (here / "out" / "d.h").unlink()
    capsys.readouterr()
    assert main(["rebuild", "out", "--check"]) == 1
    assert capsys.readouterr().out == "missing  d.h\nNOT equal\n"
    _, facts = again(capsys, "out")
    assert (facts["by_hand"], facts["missing"]) == ([], ["d.h"])
    assert (here / "out" / "d.h").is_file()


def test_no_tree(here: Path, capsys: Capture) -> None:
    assert main(["rebuild", "."]) == 64
    assert "has no report.json" in capsys.readouterr().err
    (here / "report.json").write_text('{"name": "x"}')
    assert main(["rebuild", "."]) == 2
    said = capsys.readouterr().err
    assert "has no 'provenance'. Hint: crt build makes one that says how" in said
    model = pybuild.load((here / "digits_int8.tflite").read_bytes())
    model.build("memory", name="d")
    assert main(["rebuild", "memory"]) == 2
    assert "was handed over in memory" in capsys.readouterr().err
