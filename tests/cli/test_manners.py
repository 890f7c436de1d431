"""The command among others: completion, pipes, Ctrl-C, the console's width."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pybuild.cli import main
from pybuild.cli.parser import SHELLS
from pybuild.targets.board import board_names

ROOT = Path(__file__).resolve().parents[2]
INT8 = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
RUN = "from pybuild.command import main; raise SystemExit(main())"

Capture = pytest.CaptureFixture[str]


def python(code: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, env=env)


# ---- completion -----------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a command `crt`, a model and a project file."""
    place = tmp_path_factory.mktemp("shell")
    script = place / "crt"
    lines = ["#!/bin/sh", f"PYTHONPATH={ROOT} exec {sys.executable} -c '{RUN}' \"$@\""]
    script.write_text("\n".join([*lines, ""]))
    script.chmod(0o755)
    shutil.copy(INT8, place / "net.tflite")
    text = '[models.digits]\nfile = "net.tflite"\n'
    (place / "crt.toml").write_text(text)
    return place


def completed(folder: Path, line: str) -> set[str]:
    """What bash offers after these words, the last of which is being typed."""
    words = line.split(" ")
    listed = " ".join(f"'{word}'" for word in words)
    code = f"""
        PATH={folder}:$PATH
        eval "$(crt --completion bash)"
        COMP_WORDS=({listed}) COMP_CWORD={len(words) - 1} COMP_TYPE=9
        COMP_LINE='{line}' COMP_POINT={len(line)}
        how=$(complete -p crt | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        $how crt "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, cwd=folder
    )
    assert done.stderr == "", done.stderr
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("crt bui", {"build"}),
        ("crt build --ram-l", {"--ram-limit"}),
        ("crt build --target cortex-m3", {"cortex-m3", "cortex-m33",
         "cortex-m33-nodsp", "cortex-m35p"}),
        ("crt inspect --optimise s", {"size", "speed"}),
        ("crt check --on mps2-an38", {"mps2-an385", "mps2-an386"}),
        ("crt boards micro", {"microbit"}),
        ("crt inspect n", {"net.tflite"}),
        ("crt build dig", {"digits"}),
        ("crt params ver", {"verify"}),
    ],
)  # fmt: skip
def test_bash_completes(folder: Path, line: str, offered: set[str]) -> None:
    assert completed(folder, line) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_code(shell: str, capsys: Capture) -> None:
    assert main(["--completion", shell]) == 0
    text = capsys.readouterr().out
    marks = {
        "bash": "complete -o", "zsh": "compdef", "fish": "complete --command crt",
        "powershell": "Register-ArgumentCompleter",
    }  # fmt: skip
    assert marks[shell].lower() in text.lower()
    program = shutil.which(shell)
    if program and shell in ("bash", "zsh", "fish"):
        command = [program, "-n", "/dev/stdin"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_another_shell(capsys: Capture) -> None:
    assert main(["--completion", "cmd"]) == 64
    assert capsys.readouterr().err.endswith(". Hint: crt --help\n")


# ---- pipes and signals ----------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "inspect MODEL --json",
        "inspect MODEL",
        "check MODEL --ref numpy --samples 1 --backend llvm",
        "boards",
    ],
)
def test_a_reader_that_leaves_early(words: str) -> None:
    """As of a process that SIGPIPE ends: no word, and no code that says something."""
    words = words.replace("MODEL", INT8)
    code = 'set -o pipefail; "$0" -c "$1" $2 | true'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = ["bash", "-c", code, sys.executable, RUN, words]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


SENDER = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
sent = sys.argv.pop(1)
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == sent:
            os.kill(os.getpid(), signal.SIGINT)
from pybuild.command import main
sys.meta_path.insert(0, Sender())
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    "module", ["pybuild.cli", "pybuild.cli.verbs", "numpy", "pybuild.plan.plan",
               "pybuild.verify.check", "llvmlite"],
)  # fmt: skip
def test_ctrl_c_is_quiet_whenever_it_comes(module: str) -> None:
    """Sent just before a module is imported: at the start, or in the midst of work."""
    words = ["check", INT8, "--ref", "numpy", "--samples", "1", "--backend", "llvm"]
    done = python(SENDER, module, *words)
    assert done.returncode in (130, -2), done.stderr
    assert (done.stdout, done.stderr) == ("", "")


# ---- the console ----------------------------------------------------------------


@pytest.mark.parametrize("columns", [200, 120, 90, 60, 40])
def test_boards_are_as_wide_as_there_is_room(columns: int) -> None:
    done = python(RUN, "boards", COLUMNS=str(columns))
    lines = done.stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    for name in board_names():  # no word is broken
        assert any(name in line for line in lines)
    assert "cortex-m33-nodsp" in done.stdout


def test_boards_in_a_pipe_are_one_line_each() -> None:
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-c", RUN, "boards"]
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    rows = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert rows == list(board_names())


def test_a_drawing_is_svg(tmp_path: Path, capsys: Capture) -> None:
    png = tmp_path / "r.png"
    assert main(["inspect", INT8, "--ram-curve", str(png)]) == 64
    want = f"--ram-curve: '{png}' is not a .svg file. Hint: FILE.svg\n"
    assert capsys.readouterr().err == want
    assert not png.exists()


def test_words_are_told_without_the_compiler() -> None:
    """Help, and completion at each press of a key."""
    code = "import sys; from pybuild.cli import main; main(['build', '--help']);"
    code += "from pybuild.cli import completion; heavy = ('numpy', 'rich', 'onnx', "
    code += "'llvmlite', 'cffi'); print([m for m in heavy if m in sys.modules])"
    assert python(code).stdout.splitlines()[-1] == "[]"


def test_a_build_loads_nothing_of_another_format(tmp_path: Path) -> None:
    """A fifth of a second of each build of a .tflite file was spent on onnx."""
    code = f"import sys; from pybuild.cli import main; main(['build', {INT8!r}, "
    code += f"'-o', {str(tmp_path / 'out')!r}]); print([m for m in ('onnx', 'torch', "
    code += "'llvmlite') if m in sys.modules])"
    assert python(code).stdout.splitlines()[-1] == "[]"
