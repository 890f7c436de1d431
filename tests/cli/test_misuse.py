"""The command where it is used wrongly: one line that says so, and its exit code."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pybuild.cli import INTERRUPTED, UNREAD, main
from pybuild.cli.verbs import MISMATCH
from pybuild.errors import INVALID, LIMIT, USAGE, LimitError, Problem, ValuesNeeded
from pybuild.verify.apart import CRASHED

ROOT = Path(__file__).resolve().parents[2]
INT8 = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
RUN = "from pybuild.command import main; raise SystemExit(main())"

Capture = pytest.CaptureFixture[str]


def shell(line: str) -> tuple[int, str, str]:
    """A line of bash, in which crt is this command."""
    crt = f'crt() {{ "{sys.executable}" -c "{RUN}" "$@"; }}; set -o pipefail; '
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONUNBUFFERED", None)  # written at the end, as usual
    command = ["bash", "-c", crt + line]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    return done.returncode, done.stdout, done.stderr


def test_nobody_listens(capsys: Capture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"tcp:127.0.0.1:{free.getsockname()[1]}"
    assert main(["check", INT8, "--port", where]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{where}: Connection refused\n")


@pytest.mark.parametrize("words", ["--completion bash", "--help"])
def test_what_is_printed_has_no_reader(words: str) -> None:
    assert shell(f"crt {words} | true") == (141, "", "")


@pytest.mark.parametrize("words", [f"inspect {INT8}", "boards --json", "--version"])
def test_stdout_is_closed(words: str) -> None:
    assert shell(f"crt {words} >&-") == (0, "", "")


def test_stderr_is_closed() -> None:
    assert shell("crt inspect absent.tflite 2>&-") == (2, "", "")


# ---- options that would mean nothing ---------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check MODEL --on microbit --backend llvm",
         ["--backend: cannot be combined with --on microbit"]),
        ("check MODEL --on microbit --backend c",
         ["--backend: cannot be combined with --on microbit"]),
        ("bench MODEL --on microbit --backend c --runs 3",
         ["--backend: cannot be combined with --on microbit",
          "--runs: cannot be combined with --on microbit"]),
        ("check MODEL --on host --toolchain gcc",
         ["--toolchain: cannot be combined with --on host. Hint: --on BOARD"]),
        ("run MODEL --simulator qemu",
         ["--simulator: cannot be combined with --on host. Hint: --on BOARD"]),
        ("check MODEL --data X --samples 20",
         ["--samples: cannot be combined with --data"]),
        ("check MODEL --data X --seed 0", ["--seed: cannot be combined with --data"]),
        ("check MODEL --port tcp:nowhere:1 --backend c --ref numpy",
         ["--ref: cannot be combined with --port",
          "--backend: cannot be combined with --port"]),
    ],
)  # fmt: skip
def test_two_options_of_which_one_is_idle(
    words: str, said: list[str], capsys: Capture
) -> None:
    assert main(words.replace("MODEL", INT8).split()) == 64
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", said)


def test_idle_options_of_a_project_are_for_another_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Its toolchain is for boards; on this machine nobody asked for one."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(INT8, "net.tflite")
    text = 'toolchain = "gcc"\n[models.net]\nfile = "net.tflite"\n'
    Path("crt.toml").write_text(text)
    assert main(["run", "net"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["run", "net", "--toolchain", "gcc"]) == 64


# ---- values that are wrong -------------------------------------------------------


@pytest.mark.parametrize("value", ["foo", "serial:COM1,fast", "tcp:here"])
def test_no_place_of_a_board(value: str, capsys: Capture) -> None:
    assert main(["check", INT8, "--port", value]) == 64
    assert capsys.readouterr().err.startswith(f"{value}: ")


def test_no_name_of_a_parameter_file(tmp_path: Path, capsys: Capture) -> None:
    given, out = tmp_path / "net.npz", tmp_path / "d.xyz"
    np.savez(given, w=np.zeros(3, np.float32))
    assert main(["params", "convert", str(given), "-o", str(out)]) == 64
    assert "d.xyz: is not a name of a parameter file" in capsys.readouterr().err
    assert not out.exists()


def test_a_reference_for_other_files(capsys: Capture) -> None:
    assert main(["check", INT8, "--ref", "ort"]) == 64
    assert "--ref ort cannot read this file" in capsys.readouterr().err


def test_a_folder_that_is_not_there(capsys: Capture) -> None:
    assert main(["rebuild", "nowhere"]) == 64
    assert "nowhere: has no report.json" in capsys.readouterr().err


# ---- models and project files ----------------------------------------------------


def test_a_project_file_is_read_where_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Beside a model's file too: models are its names then."""
    monkeypatch.chdir(tmp_path)
    words = ["inspect", INT8, "--project", "nope.toml"]
    assert main(words) == 64
    assert capsys.readouterr().err.startswith("nope.toml: cannot be read (")
    shutil.copy(INT8, "net.tflite")
    Path("nope.toml").write_text('[models.net]\nfile = "net.tflite"\n')
    assert main(words) == 64
    said = f"nope.toml: there is no model '{INT8}'. Hint: one of net\n"
    assert capsys.readouterr().err == said
    assert main(["inspect", "net", "--project", "nope.toml"]) == 0


def test_a_name_without_a_project_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["build", "kws"]) == 2
    hint = "give a model file, or a name in crt.toml (this folder has none)"
    assert capsys.readouterr().err == f"kws: there is no such file. Hint: {hint}\n"
    assert main(["build", INT8]) == 64
    assert capsys.readouterr().err.startswith("--out: is missing")


def test_what_another_process_raises_holds_every_finding() -> None:
    said = [Problem("a.tflite: node 3", "is too wide", "split it"), Problem("b", "no")]
    error = LimitError.of(said)
    error.rest = object()
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is LimitError and again.exit_code == error.exit_code
    assert again.problems == tuple(said) and str(again) == str(error)
    assert again.rest is None
    needed = ValuesNeeded("model", "shapes depend on values")
    needed.names = ("n",)
    assert pickle.loads(pickle.dumps(needed)).names == ("n",)


# ---- what help and pages say ------------------------------------------------------


def test_every_exit_code_is_listed(capsys: Capture) -> None:
    codes = {MISMATCH, INVALID, LIMIT, CRASHED, USAGE, INTERRUPTED, UNREAD}
    assert main(["--help"]) == 0
    told = capsys.readouterr().out.partition("exit codes: ")[2]
    assert [int(n) for n in re.findall(r"\d+", told)] == sorted({0, *codes})
    for page in ("tour", "design"):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        said = re.search(r"Exit codes: (.*?pipe)", text, re.S)
        assert said is not None
        found = re.findall(r"(\d+)\s", said[1])
        assert [int(n) for n in found] == sorted({0, *codes})


def test_a_board_as_target_names_its_core(capsys: Capture, tmp_path: Path) -> None:
    words = ["build", INT8, "-o", str(tmp_path / "t"), "--target", "mps2-an386"]
    assert main(words) == 64
    assert capsys.readouterr().err == (
        "--target: 'mps2-an386' is not known. Hint: cortex-m4, the core of that board; "
        "check, bench and run take --on mps2-an386\n"
    )
