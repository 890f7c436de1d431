"""Exported libraries, read back: what archive_write.py has written.

Nothing is compiled from the graph when one is read, unless weights are given that must
be packed anew.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.emit.content import Content
from pybuild.errors import BuildError
from pybuild.executor.archive_write import (
    CODE,
    FORMAT,
    GRAPH,
    IMAGE,
    INDEX,
    PARAMS,
    abi,
)
from pybuild.executor.factory import Factory, Package
from pybuild.files.read import read_bytes
from pybuild.frontends import graphjson
from pybuild.host.compiled_model import Compiled, SlotFacts, slot_facts
from pybuild.host.parameter_image import Weights
from pybuild.install import temporary_folder
from pybuild.ir.graph import Graph, State, Tensor
from pybuild.params.blob import read_blob
from pybuild.params.budget import UNPACKING
from pybuild.plan.plan import Plan
from pybuild.records import dataclass

# makes the library anew: graph, its facts
Rebuild = Callable[[Graph, Mapping[str, Any]], Factory]


def _with_state(graph: Graph, facts: Mapping[str, Any]) -> Graph:
    values = {
        name: np.asarray(value, graph.tensor(name).dtype.numpy)
        for name, value in facts.get("state", ())
    }
    if not values:
        return graph
    ends = dict(zip(values, graph.outputs[-len(values) :], strict=True))
    state = {name: State(end, values[name]) for name, end in ends.items()}
    inputs = graph.inputs[: -len(values)]
    outputs = graph.outputs[: -len(values)]
    return dataclasses.replace(graph, inputs=inputs, outputs=outputs, state=state)


def read(path: str | Path, rebuild: Rebuild) -> Factory | Package:
    """Reads what export() wrote; returns a Package if it was one.

    Errors  BuildError for other files, or another version
    """
    files = _files(Path(path))
    where = Path(path).name
    try:
        index = json.loads(files(INDEX))
        models = index["models"]
        version = (index["format"], index["abi"])
    except (KeyError, ValueError, TypeError):
        what = "is not a library that export_library has written"
        raise BuildError(where, what) from None
    if version != (FORMAT, abi()):
        what = f"is of format {version[0]}, ABI {version[1]}, not {FORMAT}, {abi()}"
        raise BuildError(where, what, "export it anew")
    found = {
        name: Loaded(
            where, name, facts, functools.partial(_in, files, facts), rebuild,
            bool(facts.get("bound", True)),
        )
        for name, facts in models.items()
    }  # fmt: skip
    return next(iter(found.values())) if len(found) == 1 else Package(found)


def _in(files: Callable[[str], bytes], facts: Mapping[str, Any], name: str) -> bytes:
    return files(f"{facts['folder']}/{name}")


def _files(path: Path) -> Callable[[str], bytes]:
    """Reads a file of the library by its name; KeyError if there is none."""

    def of_folder(name: str) -> bytes:
        try:
            return read_bytes(path / PurePath(name))
        except OSError:
            raise KeyError(name) from None

    def of_archive(name: str) -> bytes:
        try:
            with zipfile.ZipFile(path) as archive:
                return archive.read(name)
        except UNPACKING as error:
            raise BuildError(path.name, f"is damaged: {error}") from None

    if path.is_dir():
        return of_folder
    if not path.is_file():
        raise BuildError(str(path), "cannot be read (no such file)")
    if not zipfile.is_zipfile(path):
        what = "is not a library that export_library has written"
        raise BuildError(path.name, what)
    return of_archive


@dataclass(frozen=True, repr=False)
class Loaded(Factory):
    """A library that was read; `file` gives the bytes of one of its files."""

    where: str
    mod_name: str
    _facts: Mapping[str, Any]
    file: Callable[[str], bytes]
    rebuild: Rebuild
    bound: bool = True
    _code: dict[str, Compiled] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return str(self._facts["name"])

    def facts(self) -> dict[str, Any]:
        return {k: v for k, v in self._facts.items() if k != "folder"}

    @functools.cached_property
    def graph(self) -> Graph:
        data = self.file(GRAPH)
        made = graphjson.load(GRAPH, data, {**self._absent, **self._values})
        named = {name: name for name in self._facts["parameters"]}
        return _with_state(dataclasses.replace(made, parameters=named), self._facts)

    @functools.cached_property
    def parameters(self) -> Mapping[str, Tensor]:
        kinds = self._facts["parameters"]
        return {n: Tensor(n, tuple(k[1]), DType(k[0])) for n, k in kinds.items()}

    @functools.cached_property
    def _values(self) -> Mapping[str, Array]:
        return read_blob(self.file(PARAMS), self.where)

    @functools.cached_property
    def _absent(self) -> Mapping[str, Array]:
        """Zeros for what it was written without: kernels must not depend on it."""
        there = self.parameters.values()
        missing = [t for t in there if t.name not in self._values]
        return {t.name: np.zeros(t.shape, t.dtype.numpy) for t in missing}

    def value(self, name: str) -> Array:
        """The value of a parameter in the library.

        Errors  LookupError for what it was written without
        """
        if name not in self._values:
            raise LookupError(f"{self.where} was written without '{name}'")
        return self._values[name]

    def get_graph_json(self) -> str:
        return self.file(GRAPH).decode()

    @functools.cached_property
    def slots(self) -> tuple[SlotFacts, ...]:
        named = self._facts["options"].get("names") != "ids"
        return slot_facts(self._facts["slots"], named)

    @functools.cached_property
    def weights(self) -> Weights:
        return Weights(self.file(IMAGE))

    @functools.cached_property
    def built(self) -> Factory:
        """The same library, built again from its graph.

        Errors  BuildError where this pybuild would make another
        """
        made = self.rebuild(self.graph, self._facts)
        if made.slots != self.slots:
            what = "was made by another pybuild, whose kernels pack weights otherwise"
            raise BuildError(self.where, what, "export it anew")
        return made

    def planned(self) -> Plan:
        return self.built.planned()

    def image(self, values: Mapping[str, Array] | None = None) -> bytes:
        return self.built.image(values) if values else self.file(IMAGE)

    def retargeted(self, target: str) -> Factory:
        return self.built.retargeted(target)

    def shipped(self) -> Mapping[str, Content]:
        return self.built.shipped()

    def portable(self) -> bytes:
        return self.file(CODE[self._facts["backend"]])

    def code(self, backend: str | None = None) -> Compiled:
        own = str(self._facts["backend"])
        if backend not in (None, own):
            return self.built.code(backend)
        if own not in self._code:
            self._code[own] = self._compiled(own)
        return self._code[own]

    def _compiled(self, backend: str) -> Compiled:
        if backend == "llvm":
            from pybuild.host.jit import Jit

            return Jit(self.portable()).model(self.name)
        from pybuild.host.cc import loaded

        folder = temporary_folder()
        library = Path(folder.name) / f"{self.name}.so"
        library.write_bytes(self.portable())
        return loaded(self.name, library, folder)
