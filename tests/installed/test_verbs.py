"""Each verb of the command with gcc, with zig alone, and without compiler and network:
it works, or says what is lacking."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pybuild.install import host_compiler
from tests.toolchains import ROOT

pytestmark = pytest.mark.everywhere

SETTING = os.environ.get("CRT_SETTING", "")
DIGITS = ROOT / "examples" / "digits"
NO_COMPILER = "--backend c: there is no C compiler. Hint: pip install ziglang"
NO_SIMULATOR = "there is no simulator of mps2-an386 on this machine. Hint: apt-get"
NO_CROSS = "there is no compiler for this core on this machine. Hint: pip install"

# for each verb: its words, and what is said without a compiler where one is needed
LINES: dict[str, dict[str, str]] = {
    "inspect": {"MODEL": "", "MODEL --ram-curve": "", "MODEL --stage plan": ""},
    "build": {
        "MODEL -o out --name digits": "",
        "MODEL -o out --name digits --target cortex-m4 --emit obj": "",
        "FLOAT -o out --name digits --quantise CALIBRATION": "",
        "MODEL FLOAT -o out --name digits_int8=a --name digits_f32=b": "",
    },
    "report": {"MODEL -o report.html": ""},
    "compare": {"MODEL MODEL --plan whole": ""},
    "fit": {"MODEL": "", "MODEL --latency 50ms --json": ""},
    "sweep": {"crt.toml --workers 1": ""},
    "check": {
        "MODEL --samples 3": "",
        "MODEL --samples 3 --per-layer --backend llvm": "",
        "MODEL --samples 3 --per-layer --backend c": NO_COMPILER,
        "FLOAT --samples 3 --backend c": NO_COMPILER,
        "MODEL --samples 1 --on mps2-an386": NO_SIMULATOR,
    },
    "bench": {
        "MODEL --on host --runs 3": "",
        "MODEL --on host --runs 3 --backend c": NO_COMPILER,
        "MODEL --on mps2-an386": NO_SIMULATOR,
    },
    "run": {
        "MODEL": "",
        "MODEL --data image.npz": "",
        "MODEL --on mps2-an386": NO_SIMULATOR,
    },
    "debug": {"MODEL": "", "MODEL --backend c": NO_COMPILER},
    "init": {"MODEL": ""},
    "rebuild": {"built --from MODEL": ""},
    "trace": {"marks.bin --tree built --hertz 1000000 -o traced": ""},
    "params": {
        "pack weights.npz -o weights.crtp": "",
        "list weights.npz": "",
        "verify weights.npz": "",
        "convert weights.npz -o weights.params": "",
    },
    "boards": {"": "", "mps2-an386 -o board": NO_CROSS},
}
# of these crt's library is loaded, which the wheel of the sdist has of its own
LOADING = (
    "check MODEL --samples 3 --per-layer --backend llvm",
    "run MODEL",
    "bench MODEL --on host --runs 3",
    "debug MODEL",
    "params verify weights.npz",
)
COMPILING = ("check MODEL --samples 3", *LOADING[1:4], "boards mps2-an386 -o board")


def _lines() -> Iterator[tuple[str, str]]:
    """Without a compiler all of them; with one, those that compile, and those that say
    then what is lacking; with the wheel of the sdist, whose other files are the same to
    the byte, what loads its library."""
    for verb, known in LINES.items():
        for words, lacking in known.items():
            line = f"{verb} {words}"
            if _is_of_the_setting(line, lacking):
                yield line, lacking


def _is_of_the_setting(line: str, lacking: str) -> bool:
    if SETTING == "sdist":
        return line in LOADING
    if lacking == NO_SIMULATOR and SETTING in ("gcc", "zig"):
        # test_board_cli.py has these with gcc
        return SETTING == "zig" and not line.startswith("run")
    return SETTING in ("", "none") or bool(lacking) or line in COMPILING


def crt(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    files = {
        "MODEL": DIGITS / "digits_int8.tflite",
        "FLOAT": DIGITS / "digits_f32.onnx",
        "CALIBRATION": DIGITS / "digits_calibration.npz",
    }
    words = [str(files.get(word, word)) for word in line.split()]
    command = [str(Path(sys.executable).parent / "crt"), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_every_verb_is_here() -> None:
    done = crt("--help", Path.cwd())
    assert done.returncode == 0
    indented = [line for line in done.stdout.splitlines() if line[:4] == "    "]
    verbs = {line.split()[0] for line in indented if line[4] != " "}
    assert verbs == set(LINES)


@pytest.mark.parametrize(("line", "lacking"), [*_lines()])
def test_verb(line: str, lacking: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "image.npz", image=np.zeros((1, 8, 8, 1), np.int8))
    np.savez(tmp_path / "weights.npz", weights=np.arange(48, dtype=np.int8))
    if line.startswith("sweep"):
        shutil.copy(DIGITS / "digits_int8.tflite", tmp_path)
        model = "[models.digits]\nfile = 'digits_int8.tflite'\n"
        text = f"{model}[sweeps.all]\noptimise = ['size', 'speed']\n"
        (tmp_path / "crt.toml").write_text(text)
    (tmp_path / "marks.bin").write_bytes(np.array([5, 0xFFFF, 9, 0], "<u4").tobytes())
    if line.startswith(("rebuild", "trace")):
        made = crt("build MODEL -o built --name digits", tmp_path)
        assert made.returncode == 0, made.stderr
    done = crt(line, tmp_path)
    if lacking and not host_compiler():
        assert done.returncode == (2 if lacking == NO_CROSS else 64)
        assert lacking in done.stderr and "Traceback" not in done.stderr
        assert not done.stdout
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_check_says_which_back_ends_it_compared(tmp_path: Path) -> None:
    done = crt("check MODEL --samples 2 --json", tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    names = set(facts["backends"])
    assert names == ({"c", "llvm"} if host_compiler() else {"llvm"})
