"""A build with --api tvm as TVM's model library format, version 7: a tar archive whose
folders project templates and Kenning know. The same bytes on every machine."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol, Self

from pybuild.ecosystems.tvm import Built, module_of
from pybuild.emit.content import Content, pieces
from pybuild.emit.tables.tables import TensorRow

_CPU = 1  # DLPack's number


class Whole(Built, Protocol):
    """A build and its tree."""

    @property
    def name(self) -> str: ...

    def files(self) -> Mapping[str, Content]: ...

    def again(self, **changed: Any) -> Self: ...


def mlf_archive(made: Whole) -> bytes:
    """The archive's bytes.

    made  built with api="tvm"
    """
    module = module_of(made.options.api)
    files = {"metadata.json": _metadata(made, module).encode()}
    for path, content in made.files().items():
        if place := _place(path, made.name):
            files[place] = b"".join(pieces(content))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"./{path}")  # of 1 January 1970, of user 0
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _place(path: str, name: str) -> str:
    """Where a file of the tree is in the archive; "": it is not."""
    match PurePosixPath(path).parts:
        case ("executor-config" | "parameters", *_):
            return path
        case ("crt", "include", *rest):
            return "/".join(("runtime/include", *rest))
        case ("crt", "src", file):
            return f"runtime/src/crt/{file}"
        case ("tvm", "src", file) if file.endswith(".c"):
            return f"runtime/src/tvm/{file}"
        case ("tvm" | "dlpack", *_):
            return f"runtime/include/{path}"
        case (file,) if file == f"{name}_selftest.c":
            return ""
        case (file,) if file.endswith((".c", ".o")):
            folder = "src" if file.endswith(".c") else "lib"
            return f"codegen/host/{folder}/{file}"
        case (file,) if file.endswith(".h"):
            return f"codegen/host/include/{file}"
    return ""


def _metadata(made: Whole, module: str) -> str:
    tables = made.tables
    ends = (*tables.inputs, *tables.outputs)
    main = {
        "device": _CPU,
        "workspace_size_bytes": tables.arena_bytes + tables.instance_bytes,
        "constants_size_bytes": tables.weight_bytes + tables.image_bytes,
        "io_size_bytes": sum(row.tensor.bytes for row in ends),
        "inputs": _sizes(tables.inputs),
        "outputs": _sizes(tables.outputs),
    }
    facts: dict[str, Any] = {
        "model_name": module,
        "export_datetime": "1970-01-01 00:00:00Z",
        "memory": {"functions": {"main": [main], "operator_functions": []}, "sids": []},
        "target": [f"c -mcpu={made.options.target}"],
        "executors": ["aot", "graph"],
        "style": "full-model",
    }
    whole = {"version": 7, "modules": {module: facts}}
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def _sizes(rows: Sequence[TensorRow]) -> dict[str, dict[str, Any]]:
    return {
        row.tensor.name: {"size": row.tensor.bytes, "dtype": row.tensor.dtype.value}
        for row in rows
    }
