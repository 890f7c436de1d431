"""Libraries to files: graph JSON, weights, packed weights and code.

A zip file or a folder; the same bytes for the same models.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from pybuild.frontends import graphjson
from pybuild.host.compiled_model import SlotFacts
from pybuild.install import crt_include
from pybuild.ir.graph import Graph, Tensor
from pybuild.package.folder import write_file
from pybuild.params.blob import read_blob, write_blob
from pybuild.params.image_read import read_image
from pybuild.params.image_write import write_image
from pybuild.passes.state import state_as_inputs

FORMAT = 1
INDEX = "library.json"
GRAPH, PARAMS, IMAGE = "graph.json", "graph.params", "weights.crtp"
CODE = {"llvm": "code.bc", "c": "code.so"}


class Exported(Protocol):
    """The interface that a library needs to be exported: factory.py's Factory has it.
    Not bound: it is written without its parameters.
    """

    @property
    def bound(self) -> bool: ...

    @property
    def parameters(self) -> Mapping[str, Tensor]: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def slots(self) -> tuple[SlotFacts, ...]: ...

    def image(self) -> bytes: ...

    def facts(self) -> dict[str, Any]: ...

    def portable(self) -> bytes: ...


def export(libraries: Mapping[str, Exported], path: str | Path) -> None:
    """Writes all files, or nothing if there is an error.

    Errors  BuildError for a name that no folder can have, or without a compiler
    """
    files: dict[str, bytes] = {}
    index: dict[str, Any] = {"format": FORMAT, "abi": abi(), "models": {}}
    for number, (name, library) in enumerate(libraries.items()):
        text, params = graphjson.dump(state_as_inputs(library.graph))
        folder = f"{number}"
        files[f"{folder}/{GRAPH}"] = text.encode()
        files[f"{folder}/{PARAMS}"] = _kept(library, params)
        packed = [s.entry for s in library.slots if library.bound or not s.sources]
        if packed:
            files[f"{folder}/{IMAGE}"] = only(packed, library.image())
        facts = library.facts() | _state(library.graph)
        facts.pop("bound", None)
        if not library.bound:
            facts["bound"] = False
        files[f"{folder}/{CODE[facts['backend']]}"] = library.portable()
        index["models"][name] = {"folder": folder, **facts}
    files[INDEX] = (json.dumps(index, indent=2, sort_keys=True) + "\n").encode()
    place = Path(path)
    if str(path).endswith("/") or place.is_dir():
        for file, data in files.items():
            write_file(place / file, data)
        return
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for file, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(file), data)  # of no time of day
    write_file(place, out.getvalue())


def _kept(library: Exported, params: bytes) -> bytes:
    """The parameter file, without parameters that users give."""
    if library.bound:
        return params
    values = read_blob(params, PARAMS)
    rest = {n: v for n, v in values.items() if n not in library.parameters}
    return write_blob(rest)


def only(names: Collection[str], image: bytes) -> bytes:
    """The image without other entries than these."""
    found = read_image(image, "parameters").parameters()
    kept = [p for p in found if p.name in names]
    assert len(kept) == len(names), (names, [p.name for p in found])
    return image if len(kept) == len(found) else write_image(kept)


def _state(graph: Graph) -> dict[str, Any]:
    """The state that is kept from run to run: first values by name; the graph has them
    as its last inputs and outputs."""
    if not graph.state:
        return {}
    return {"state": [[n, s.initial.tolist()] for n, s in graph.state.items()]}


def abi() -> str:
    """The number of the ABI that the tables in the code have."""
    text = (crt_include() / "crt" / "abi.h").read_text(encoding="utf-8")
    return text.partition("#define CRT_ABI ")[2].split()[0]
