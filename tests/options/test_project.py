"""crt.toml: what is built from it, and what is said of a wrong one."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pybuild.cli import main
from pybuild.errors import UsageError
from pybuild.options.option import of_words
from pybuild.options.packages import PackageOptions
from pybuild.options.table import COMMON, VERBS, BoardOptions, TreeOptions
from pybuild.project.read import ALONE, find_project, read_project
from pybuild.project.write import project_text
from tests.failing.names import filled

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
FAILING = ROOT / "tests" / "failing" / "projects" / "messages.toml"
CASES: dict[str, Any] = tomllib.loads(FAILING.read_text())

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models, which is the current one."""
    for name in ("digits_int8.tflite", "digits_f32.onnx"):
        shutil.copy(DIGITS / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def crt(capsys: Capture, *words: str) -> Any:
    code = main([*words, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, here: Path, capsys: Capture) -> None:
    Path("crt.toml").write_text(CASES[name]["text"].removeprefix("\n"))
    before = sorted(here.rglob("*"))
    assert main(["build", "--json"]) == 64
    out, err = capsys.readouterr()
    assert err.splitlines() == filled(CASES[name]["message"])
    assert len(json.loads(out)["error"]) == len(CASES[name]["message"])
    assert sorted(here.rglob("*")) == before


TWO = """
plan = "whole"
[models.small]
file = "digits_int8.tflite"
target = "cortex-m4"
[models.small.check]
samples = 2
ref = "numpy"
backend = "llvm"
[models.large]
file = "digits_f32.onnx"
out = "far/large"
"""


def test_all_of_it_is_built(here: Path, capsys: Capture) -> None:
    Path("crt.toml").write_text(TWO)
    facts = crt(capsys, "build")
    small, large = facts["trees"]
    assert (small["name"], large["name"]) == ("small", "large")
    assert (small["target"], large["target"]) == ("cortex-m4", "generic")
    assert all(stage["steps"] == 1 for stage in small["stages"])
    assert (here / "build" / "small" / "small.h").is_file()
    assert (here / "far" / "large" / "large.h").is_file()


def test_one_of_it_and_the_command_line_counts_most(
    here: Path, capsys: Capture
) -> None:
    Path("crt.toml").write_text(TWO)
    facts = crt(capsys, "build", "small", "--target", "cortex-m0", "-o", "own")
    assert (facts["name"], facts["target"]) == ("small", "cortex-m0")
    assert [path.name for path in here.iterdir() if path.is_dir()] == ["own"]
    assert crt(capsys, "inspect", "small")["target"] == "cortex-m4"
    checked = crt(capsys, "check", "small")
    assert (checked["samples"], list(checked["backends"])) == (2, ["llvm"])
    assert checked["reference"].startswith("numpy")
    assert crt(capsys, "check", "small", "--samples", "3")["samples"] == 3
    assert crt(capsys, "run", "large")["model"] == "large"
    # a file is a file, whatever the project says
    assert crt(capsys, "inspect", "digits_int8.tflite")["target"] == "generic"
    assert main(["build", "-o", "one"]) == 64
    assert "--out: one folder for 2 trees" in capsys.readouterr().err
    assert main(["inspect"]) == 64
    assert "MODEL is missing. Hint: one of small, large" in capsys.readouterr().err
    assert main(["build", "smal"]) == 64
    assert "did you mean 'small'?" in capsys.readouterr().err


def test_nothing_is_written_where_one_fails(here: Path, capsys: Capture) -> None:
    Path("crt.toml").write_text(TWO.replace("digits_f32.onnx", "none.onnx"))
    assert main(["build"]) == 2
    assert "none.onnx: cannot be read" in capsys.readouterr().err
    assert not (here / "build").exists()
    Path("crt.toml").write_text(TWO.replace("far/large", "build/small"))
    assert main(["build"]) == 64
    assert "two trees would be in" in capsys.readouterr().err
    assert not (here / "build").exists()


def test_an_image_from_elsewhere(here: Path, capsys: Capture) -> None:
    """Each model is read in its own way, and quantised; paths are the file's."""
    shutil.copy(DIGITS / "digits_calibration.npz", here / "c.npz")
    (here / "sub").mkdir()
    (here / "sub" / "crt.toml").write_text("""
[models.a]
file = "../digits_int8.tflite"
[models.b]
file = "../digits_f32.onnx"
quantise = "../c.npz"
no-fit-weights = true
[images.both]
models = ["a", "b"]
exclusive = "a,b"
plan = "whole"
""")
    facts = crt(capsys, "build", "--project", "sub/crt.toml", "--outside")
    assert facts["exclusive"] == [["a", "b"]]
    second = facts["models"][1]
    assert second["quantisation"]["samples"] > 0
    assert second["quantisation"]["fitted"] is False
    assert (here / "sub" / "build" / "both" / "both.h").is_file()


def test_a_section_of_pyproject(here: Path, capsys: Capture) -> None:
    text = "[project]\nname = 'x'\n[tool.crt.models.d]\nfile = 'digits_int8.tflite'\n"
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_project() is None
    Path("pyproject.toml").write_text(text)
    assert crt(capsys, "inspect", "d")["name"] == "d"
    Path("pyproject.toml").write_text(text + "bund = 3\n")
    assert main(["build"]) == 64
    want = "pyproject.toml:5: unknown key 'bund'. Hint: did you mean 'bound'?\n"
    assert capsys.readouterr().err == want


def test_without_a_model_and_without_a_file(here: Path, capsys: Capture) -> None:
    assert main(["build"]) == 64
    assert "crt init MODEL writes" in capsys.readouterr().err
    assert main(["build", "--project", "none.toml"]) == 64
    assert "none.toml: cannot be read" in capsys.readouterr().err


def test_init(here: Path, capsys: Capture) -> None:
    assert main(["init", "digits_int8.tflite", "--name", "d"]) == 0
    assert read_project(Path("crt.toml")).models["d"].file == "digits_int8.tflite"
    assert "crt build d" in capsys.readouterr().out
    assert crt(capsys, "inspect")["name"] == "d"
    Path("crt.toml").write_text("mine")
    assert main(["init", "digits_int8.tflite"]) == 64
    assert Path("crt.toml").read_text() == "mine"
    assert main(["init", "digits_int8.tflite", "--force"]) == 0
    assert main(["init", "none.tflite", "-o", "other.toml"]) == 2
    assert not Path("other.toml").exists()


def test_what_init_says_of_a_model_elsewhere_works(here: Path, capsys: Capture) -> None:
    assert main(["init", "digits_int8.tflite", "-o", "in/crt.toml"]) == 0
    said = re.findall("crt (build .*) builds it", capsys.readouterr().out)[0]
    where = ["--project", "in/crt.toml"]
    assert main([*said.replace(" --outside", "").split(), *where]) == 64
    assert main([*said.split(), *where]) == 0


def test_every_option_is_in_the_file_that_init_writes(tmp_path: Path) -> None:
    """Each line that is commented out may be used, and means what it says."""
    text = project_text("d", "d.tflite")
    (tmp_path / "crt.toml").write_text(text)
    assert read_project(tmp_path / "crt.toml").models["d"].values == {}
    section = r"# (\[models\.[\w.]+\]|[a-z][a-z0-9-]* = .+)\n"
    used = re.sub(section, r"\1\n", text.partition("# Several models")[0])
    (tmp_path / "crt.toml").write_text(used)
    entry = read_project(tmp_path / "crt.toml").models["d"]
    known = {
        one.word for one in of_words(TreeOptions, PackageOptions, *COMMON, BoardOptions)
    }
    assert set(entry.values) == known - set(ALONE)
    for verb in set(VERBS) - {"build", "sweep"}:
        shared = of_words(*COMMON, BoardOptions)
        own = {one.word for one in of_words(*VERBS[verb])}
        assert set(entry.by_verb[verb]) == own - {one.word for one in shared}


def test_the_page_shows_a_file_that_is_right(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "project-file.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    (tmp_path / "crt.toml").write_text(text)
    project = read_project(tmp_path / "crt.toml")
    assert list(project.trees) == ["digits", "both"]
    assert project.values(project.models["digits"], "check")["samples"].raw == 5
    assert project.values(project.models["digits"], "bench")["on"].raw == "mps2-an386"
    assert "on" not in project.values(project.models["digits"], "check")
    wrong = text.replace("optimise", "optimiser").replace('"64K"', '"much"')
    (tmp_path / "crt.toml").write_text(wrong)
    with pytest.raises(UsageError) as raised:
        read_project(tmp_path / "crt.toml")
    said = [str(problem) for problem in raised.value.problems]
    assert said[0].endswith("unknown key 'optimiser'. Hint: did you mean 'optimise'?")
    assert said[1].partition(": ")[2].startswith("ram-limit: 'much' is not a size.")
