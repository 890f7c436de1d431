"""Replacements for tvm.micro: a build as a model library format archive."""

from __future__ import annotations

from pathlib import Path

from pybuild.library import Library
from pybuild.package.folder import write_file

__all__ = ["export_model_library_format"]


def export_model_library_format(mod: Library, file_name: str | Path) -> str:
    """Writes the archive; its path.

    mod     of pybuild.build; without api="tvm" it is built again with that
    Errors  BuildError
    """
    write_file(Path(file_name), mod.mlf())
    return str(file_name)
