"""Folders that are gone with the script: tvm.contrib.utils."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Self


class TempDirectory:
    """A folder until remove(), the end of a `with`, or until nobody has it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crt-")

    @property
    def temp_dir(self) -> str:
        """Its path as a text."""
        return self._folder.name

    @property
    def path(self) -> Path:
        return Path(self._folder.name)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return str(self.path / name)

    def listdir(self) -> list[str]:
        """The names of the files in the folder."""
        return sorted(os.listdir(self._folder.name))

    def remove(self) -> None:
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def tempdir() -> TempDirectory:
    return TempDirectory()
