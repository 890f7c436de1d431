"""Linux on aarch64 by QEMU: a generated tree, and `crt` as pip installs it there.

The folder of that system is Debian's packages, unpacked; only root may enter it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.systems.trees import MODEL, compile_tree
from tests.toolchains import ROOT, absent, require, run
from tests.wheels import distributions

QEMU = "qemu-aarch64-static"
SUITE = "bookworm"  # its Python is 3.11
TAGS = ("manylinux2014", "manylinux_2_26", "manylinux_2_27", "manylinux_2_28")


@pytest.mark.sweep
def test_a_tree_passes_its_self_test(tmp_path: Path) -> None:
    program = compile_tree("linux-aarch64", tmp_path)
    assert "digits: self-test: no error" in run([require(QEMU), program])


def _system(root: Path) -> None:
    """Python and pip of Debian; nothing is configured, as nothing else has to run."""
    words = ["--foreign", "--arch=arm64", "--variant=minbase"]
    more = "--include=python3,python3-pip"
    made = subprocess.run(
        [require("debootstrap"), *words, more, SUITE, root], capture_output=True
    )
    if made.returncode != 0:
        absent(f"debootstrap failed: {made.stdout.decode()[-300:]}")
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        run(["dpkg-deb", "-x", package, root])
    shutil.copy(require(QEMU), root / "usr" / "bin")


def _wheels(folder: Path) -> None:
    """Ours, and those of what it needs, for that system, from the package index."""
    wheel = distributions().direct
    platforms = [f"--platform={tag}_aarch64" for tag in TAGS]
    for_python = ["--python-version=3.11", "--only-binary=:all:", *platforms]
    pip = [sys.executable, "-m", "pip", "download", "-q", "-d", folder, *for_python]
    pinned = ("-c", ROOT / ".ci" / "constraints.txt")
    run([*pip, *pinned, f"{wheel}[verify]"])


@pytest.mark.sweep
@pytest.mark.timeout(1800)
@pytest.mark.skipif(platform.machine() == "aarch64", reason="this is that system")
def test_the_wheel_checks_a_model(tmp_path: Path) -> None:
    if os.getuid() != 0:
        absent("only root enters the folder of another system")
    root = tmp_path / "root"
    _system(root)
    _wheels(root / "wheels")
    shutil.copy(MODEL, root)
    python = ["chroot", root, f"/usr/bin/{QEMU}", "/usr/bin/python3.11"]
    pip = ["-m", "pip", "install", "-q", "--break-system-packages", "--no-index"]
    run([*python, *pip, "--find-links", "/wheels", "pybuild-crt", "ai-edge-litert"])

    where = "from pybuild.install import host_library as h; print(h())"
    library = run([*python, "-c", where]).strip()
    assert library.endswith("pybuild/_data/lib/linux-aarch64/libcrt.so")

    words = ["/usr/local/bin/crt", "check", f"/{MODEL.name}", "--json"]
    done = subprocess.run([*python, *words], capture_output=True, cwd="/")
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["ok"] and seen["reference"].startswith("LiteRT")
    assert seen["backends"]["llvm"]["elements"] == 200
