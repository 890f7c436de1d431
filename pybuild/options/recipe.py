"""How a tree came to be, so that it can be made again: files by name, and options.

No path of the machine: a tree has the same bytes wherever it is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pybuild.files.read import SAMPLES, read_bytes
from pybuild.options.option import keywords, of_words, plain
from pybuild.options.table import BuildOptions, LoadOptions, QuantiseOptions
from pybuild.records import dataclass


@dataclass(frozen=True)
class Source:
    """A file, or a folder of samples, by its name and SHA-256."""

    file: str
    sha256: str

    def to_json(self) -> dict[str, str]:
        return {"file": self.file, "sha256": self.sha256}


def source_of(path: Path) -> Source:
    """The name and hash of a file; for a folder, of all files in it."""
    whole = hashlib.sha256()
    parts = sorted(path.iterdir()) if path.is_dir() else [path]
    for part in parts:
        data = read_bytes(part, SAMPLES) if part.is_file() else b""
        if path.is_dir():
            whole.update(f"{part.name} {len(data)} ".encode())
        whole.update(data)
    return Source(path.name, whole.hexdigest())


@dataclass(frozen=True)
class Recipe:
    """The recipe of a model: its files and options.

    model     its file; None: it was handed over in memory, or with weights or functions
    quantise  None: it is as its file has it
    data      that it was calibrated with; test: measured with; None: arrays in memory
    """

    model: Source | None = None
    load: LoadOptions = field(default_factory=LoadOptions)
    quantise: QuantiseOptions | None = None
    data: Source | None = None
    test: Source | None = None

    def with_state(self, state: Mapping[str, str]) -> Recipe:
        return replace(self, load=replace(self.load, state=dict(state)))

    def to_json(self) -> dict[str, Any]:
        """Every option, with its value."""
        made: dict[str, Any] = {"model": self.model and self.model.to_json()}
        made["load"] = plain(keywords(self.load))
        if self.quantise is not None:
            made["quantise"] = plain(keywords(self.quantise))
            made["data"] = self.data and self.data.to_json()
            made["test"] = self.test and self.test.to_json()
        return made

    def words(self, build: BuildOptions) -> list[str]:
        """The options that are not the default, as on the command line."""
        found = told_words(self.load)
        if self.quantise is not None:
            data = None if self.data is None else self.data.file
            test = None if self.test is None else self.test.file
            found += told_words(replace(self.quantise, data=data, test=test))
        target, more = build.target, dict[str, Any]()
        if isinstance(target, Mapping):
            more = {str(n): each for n, each in target.items() if n}
            build = replace(build, target=target[0])
        found += told_words(build)
        for number, each in plain(more).items():
            found += ["--device", f"{number}={each}"]
        return found


def told_words(options: object) -> list[str]:
    found: list[str] = []
    for one in of_words(type(options)):
        value = getattr(options, one.keyword)
        if plain(value) != plain(one.default) and value != one.default:
            found += one.words(value)
    return found
