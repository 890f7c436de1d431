"""tests/profile.py: what a child is counted as, and that a run's table adds up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.profile import FOLDER, kind_of, read, tables

SLOW = """
import subprocess, sys
import pytest

BUSY = "import time\\nwhile time.process_time() < 0.4: pass"

@pytest.fixture
def busy():
    subprocess.run([sys.executable, "-c", BUSY], check=True)

def test_waits(busy):
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(["gcc", "-c", "absent.c"], check=True, capture_output=True)
"""


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/usr/bin/arm-none-eabi-gcc -O2 -c a.c -o a.o", "compile"),
        ("gcc a.c b.o -o program", "compile and link"),
        ("python3 -m ziglang cc -target x -c a.c", "compile"),
        ("qemu-system-arm -M mps2-an386 -kernel x.elf", "simulate"),
        ("ld.lld -o x a.o", "link"),
        ("/venv/bin/crt build net.tflite", "pybuild"),
        ("/venv/bin/python -m pybuild.cli build net.tflite", "pybuild"),
        ("ninja -C build", "meson, cmake, make"),
        ("doxygen", "other programs"),
    ],
)
def test_kinds(command: str, kind: str) -> None:
    assert kind_of(command.split()) == kind


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_slow.py").write_text(SLOW)
    (made := tmp_path / "made").mkdir()
    monkeypatch.setenv(FOLDER, str(made))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.profile"]
    command += ["-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    by_phase = {record["phase"]: record for record in read(made)}
    assert 0.35 < by_phase["setup"]["kinds"]["pybuild"] <= by_phase["setup"]["total"]
    assert "compile" in by_phase["call"]["kinds"]
    text = tables(read(made))
    assert "| pybuild |" in text and "test_waits (setup)" in text
