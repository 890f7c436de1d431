"""Names that a file says of other files: of one beside it, or within a folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from pybuild.text.escaped import escaped

_MOST = 255  # characters, of every system that there is


def is_plain(name: object) -> bool:
    """True if it is the name of a file, on each system: no path, no drive, and nothing
    in it that a terminal would obey."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= _MOST
        and name not in (".", "..")
        and name == escaped(name)
        and name == PurePosixPath(name).name == PureWindowsPath(name).name
        and not PureWindowsPath(name).drive
    )


def is_inside(name: object) -> bool:
    """True if it is a path of plain names, as `crt/src/run.c`."""
    return isinstance(name, str) and all(map(is_plain, name.split("/")))


def stays_within(folder: Path, path: Path) -> bool:
    """True if a path, with all links followed, ends in the folder or below it."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False
