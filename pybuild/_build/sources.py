"""Lists the files of the package for meson.build, one a line, sorted."""

from __future__ import annotations

from pathlib import Path

LEFT_OUT = {"__pycache__", "_build", "_data"}

root = Path(__file__).resolve().parent.parent.parent
for path in sorted((root / "pybuild").rglob("*")):
    name = path.relative_to(root)
    if path.is_file() and not LEFT_OUT & set(name.parts):
        print(name.as_posix())
