"""crt as a shared library of each system that a release serves, made by zig.

What glibc it needs (2.17) and which macOS (11) stands in zig's names. None links
Python's library, so none depends on a version of Python.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# pybuild.install.system(): (zig's name, the library's)
SYSTEMS = {
    "linux-aarch64": ("aarch64-linux-gnu.2.17", "libcrt.so"),
    "linux-x86_64": ("x86_64-linux-gnu.2.17", "libcrt.so"),
    "macos-arm64": ("aarch64-macos.11.0", "libcrt.dylib"),
    "macos-x86_64": ("x86_64-macos.11.0", "libcrt.dylib"),
    "win-amd64": ("x86_64-windows-gnu", "crt.dll"),
}
FLAGS = ("-std=c99", "-O2", "-g0", "-s", "-shared")


def library(crt: Path, target: str, name: str) -> bytes:
    """The same bytes for the same sources and the same zig.

    Errors  RuntimeError with zig's message
    """
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS]
    # as they are named here, so that no path of this machine is in the library
    sources = [f"src/{path.name}" for path in sorted((crt / "src").glob("*.c"))]
    named = ["-Wl,-install_name,@rpath/libcrt.dylib"] if "macos" in target else []
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / name
        command = [*zig, *named, "-Iinclude", *sources, "-o", str(made)]
        done = subprocess.run(
            command, cwd=crt, capture_output=True, encoding="utf-8", errors="replace"
        )
        if done.returncode != 0:
            raise RuntimeError(f"zig cannot compile crt for {target}: {done.stderr}")
        return made.read_bytes()


def libraries(crt: Path) -> dict[str, bytes]:
    """The library of each system, by its path: linux-aarch64/libcrt.so, ..."""
    with ThreadPoolExecutor() as pool:
        made = pool.map(lambda known: library(crt, *known), SYSTEMS.values())
        places = [f"{system}/{name}" for system, (_, name) in SYSTEMS.items()]
        return dict(zip(places, made, strict=True))
