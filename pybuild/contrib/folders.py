"""Folders that are gone with the script: tvm.contrib.utils."""

from __future__ import annotations

import tempfile
from pathlib import Path


class TempDirectory:
    """A folder until remove(), or until nobody has it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crt-")

    def path(self) -> str:
        return self._folder.name

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return str(Path(self._folder.name) / name)

    def remove(self) -> None:
        self._folder.cleanup()


def tempdir() -> TempDirectory:
    return TempDirectory()
