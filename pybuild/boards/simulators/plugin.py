"""Our plugin for a QEMU of this machine, built for the plugin API that this QEMU has.

A QEMU says which versions of the API it takes when it refuses one: it is asked once in
a process. Knows no board and no firmware.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

from pybuild.boards.simulators.count import counter_library
from pybuild.errors import BuildError

NEWEST = 7  # of the API, that boards/host/qemu_count.c knows
_MACHINE = ("-M", "none", "-display", "none", "-monitor", "none", "-serial", "none")
_PATIENCE = 20.0  # seconds; it takes 0.05


def counting_plugin(qemu: str) -> Path:
    """The plugin that counts in the QEMU of this path.

    Errors  BuildError that says why it cannot count
    """
    made, why = _plugin(qemu)
    if made is None:
        raise BuildError(Path(qemu).name, f"cannot count instructions: {why}")
    return made


def why_not(qemu: str) -> str:
    """Why the QEMU of this path cannot count; "" where it can."""
    return _plugin(qemu)[1]


@functools.cache
def _plugin(qemu: str) -> tuple[Path | None, str]:
    if sys.platform == "win32":
        return None, "on Windows it takes no functions of a plugin"
    try:
        library, said = _loaded(qemu, NEWEST)
        older = re.search(r"only up to version (\d+)", said)
        if older:
            library, said = _loaded(qemu, int(older[1]))
    except BuildError as error:
        return None, error.problems[0].what
    return (None if said else library), said


def _loaded(qemu: str, api: int) -> tuple[Path, str]:
    """The plugin for a version of the API; what QEMU says against it."""
    library = counter_library("qemu_count.c", f"QEMU_API={api}")
    asked = ["-plugin", str(library).replace(",", ",,")]
    try:
        done = subprocess.run(
            [qemu, *_MACHINE, *asked], capture_output=True, timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return library, f"it does not run ({type(error).__name__})"
    if done.returncode == 0 and b"counts" in done.stdout:
        return library, ""
    last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return library, last.rpartition(": ")[2] or f"it ended with {done.returncode}"
