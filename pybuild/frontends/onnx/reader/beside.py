"""External data: tensors whose bytes are in files beside the .onnx file, as PyTorch
writes them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pybuild.errors import BuildError, Problem
from pybuild.files.read import EXTERNAL, opened

if TYPE_CHECKING:
    from onnx import TensorProto

_HINT = "keep both files in one folder, or save with external_data=False"


class Beside:
    """The folder of a model, None if it has none, and the external files read from it.

    files  the files with tensors, by their names in the model
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.files: dict[str, Path] = {}

    def digest(self, data: bytes) -> str:
        """Return the hash of a model and its external files."""
        whole = hashlib.sha256(data)
        for name in sorted(self.files):
            with opened(self.files[name], EXTERNAL) as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        return whole.hexdigest()

    def size(self, data: bytes) -> int:
        """The size of a model and of the files beside it."""
        return len(data) + sum(os.path.getsize(path) for path in self.files.values())

    def fill(self, source: str, tensors: Iterable[TensorProto]) -> list[Problem]:
        """Load the bytes of each external tensor; return the problems, one for each
        file."""
        found: dict[str, Problem] = {}
        for tensor in tensors:
            if not (tensor.data_location or tensor.external_data):
                continue
            facts = {entry.key: entry.value for entry in tensor.external_data}
            name = facts.get("location", "")
            try:
                tensor.raw_data = self._bytes(name, facts)
            except (BuildError, OSError, ValueError) as error:
                reason = str(error) if isinstance(error, BuildError) else "is damaged"
                what = f"tensor '{tensor.name}' is in the file '{name}', which {reason}"
                found.setdefault(name, Problem(source, what, _HINT))
                continue
            del tensor.external_data[:]
            tensor.ClearField("data_location")
        return list(found.values())

    def _bytes(self, name: str, facts: dict[str, str]) -> bytes:
        """Return the bytes of a tensor with external data.

        Errors  BuildError, OSError, ValueError: callers report these as problems
        """
        path = self._path(name)
        size = os.path.getsize(path)
        offset = int(facts.get("offset", 0))
        length = int(facts.get("length", size - offset))
        if min(offset, length) < 0 or offset + length > size:
            raise ValueError
        with opened(path, EXTERNAL) as file:
            file.seek(offset)
            return file.read(length)

    def _path(self, name: str) -> Path:
        """Return the path of an external file.

        Errors  BuildError if it is not a file in the model's folder or a folder within
        """
        if name in self.files:
            return self.files[name]
        if self.folder is None:
            raise BuildError("", "is not given here")
        path = self.folder / name
        inside = path.resolve().is_relative_to(self.folder.resolve())
        if not name or not inside:
            raise BuildError("", "is not in the folder of the model")
        if not path.is_file():
            raise BuildError("", "is not there")
        self.files[name] = path
        return path
