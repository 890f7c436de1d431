"""One build of a sweep as plain data, which goes to another process or machine; and the
hash of all that it is made of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError
from pybuild.files.read import EXTERNAL, opened
from pybuild.files.result_cache import files_below
from pybuild.records import dataclass

HOST = "host"
_SHORT = 32  # digits of a key


@dataclass(frozen=True)
class Job:
    """A build.

    key       of all that it is made of: the same key, the same row and report
    name      of the model in the project, prefix of its C names; path: its file
    load, build, quantise  keywords of pybuild.load, Model.build, pybuild.quantise with
              their values as JSON has them; quantise {}: as the file has it
    measure   keywords of DataOptions; board: of BoardOptions and the second core's
    device    what the board's rows are counted by; None: estimated
    files     digest of the model, and of each other file by its path
    tool      digest of the code that builds
    """

    key: str
    name: str
    path: str
    load: Mapping[str, Any]
    build: Mapping[str, Any]
    quantise: Mapping[str, Any]
    measure: Mapping[str, Any]
    board: Mapping[str, Any]
    device: Mapping[str, Any] | None
    model: str
    files: Mapping[str, str]
    tool: str = field(repr=False)

    @property
    def source(self) -> tuple[Any, ...]:
        """The key of the model before it is built: jobs of one source share it."""
        parts = (self.path, self.model, self.load, self.quantise, self.files)
        return tuple(json.dumps(one, sort_keys=True) for one in parts)


def to_load(load: Mapping[str, Any], quantise: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of pybuild.load; state and features are added after quantising."""
    late = ("state", "front") if quantise else ()
    return {name: value for name, value in load.items() if name not in late}


def key_of(facts: Mapping[str, Any]) -> str:
    """The key of values that JSON can hold."""
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_SHORT]


def content_of(path: Path) -> str:
    """SHA-256 of a file's name and bytes; of a folder, all that is below it.

    Errors  BuildError
    """
    whole = hashlib.sha256(path.name.encode())
    try:
        for name, file in files_below(path):
            whole.update(f"\0{name}\0{file.stat().st_size}\0".encode())
            with opened(file, EXTERNAL) as open_file:
                whole.update(hashlib.file_digest(open_file, "sha256").digest())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BuildError(str(path), f"cannot be read ({reason})") from None
    return whole.hexdigest()
