"""Kconfig files, read by kconfiglib: settings for CMake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import kconfiglib


def settings(files: Sequence[Path], defaults: str, out: Path) -> Path:
    """A file that CMake includes, of what files of Kconfig and a project's say.

    defaults  lines like CONFIG_X=y; an unknown one is an error
    """
    root, chosen = out.with_name("Kconfig.all"), out.with_name("chosen.conf")
    root.write_text("".join(f'source "{path}"\n' for path in files))
    chosen.write_text(defaults)
    found = kconfiglib.Kconfig(str(root), warn_to_stderr=False)
    found.load_config(str(chosen))
    assert not found.warnings, found.warnings
    lines = [
        f"set(CONFIG_{symbol.name} y)\n"
        for symbol in found.unique_defined_syms
        if symbol.str_value == "y"
    ]
    out.write_text("".join(lines))
    return out
