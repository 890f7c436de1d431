"""Lists the files of the package for meson.build, one a line, sorted."""

from __future__ import annotations

from pathlib import Path

root = Path(__file__).resolve().parent.parent.parent
for path in sorted((root / "pybuild").rglob("*")):
    name = path.relative_to(root)
    wanted = path.suffix == ".py" or path.name == "py.typed"
    if wanted and "_build" not in name.parts and "_data" not in name.parts:
        print(name.as_posix())
