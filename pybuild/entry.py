"""What can be handed to pybuild: files, text, graphs; each becomes a Model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.graph import Graph
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops.functions import AnyFunctions


def load(
    path: str | Path,
    input_dims: Mapping[str, int] | None = None,
    functions: AnyFunctions = None,
    weights: bytes | Mapping[str, Array] | None = None,
) -> Model:
    """Reads a .tflite or .onnx file, or a graph .json with its .params beside it.

    input_dims  values of the dimensions that the file leaves open, by name
    functions   what nodes of a graph .json call that name no operator
    weights     of a graph .json: arrays by name, or a parameter file's bytes; None:
                of the file beside it
    Errors      BuildError with every finding
    """
    where = str(path)
    suffix = Path(where).suffix.lower()
    short = Path(where).name
    try:
        data = Path(where).read_bytes()
    except OSError as error:
        raise BuildError(where, f"cannot be read ({error.strerror})") from None
    dims = dict(input_dims or {})
    digest = hashlib.sha256(data).hexdigest()
    if suffix == ".tflite":
        from pybuild.frontends import tflite

        return Model(where, tflite.load(short, data, dims), "litert", digest)
    if suffix == ".onnx":
        from pybuild.frontends import onnx

        return Model(where, onnx.load(short, data, dims), "onnx", digest)
    if suffix == ".json":
        from pybuild.frontends import graphjson

        beside = Path(where).with_suffix(".params")
        if weights is None and beside.is_file():
            weights = beside.read_bytes()
        graph = graphjson.load(short, data, weights, functions)
        return Model(where, graph, "litert", digest)
    hint = "give .tflite, .onnx or graph .json"
    raise BuildError(short, f"files '{suffix}' are not read", hint)


def build(
    what: Model | Graph | str | Path,
    out: str | Path | None = None,
    *,
    functions: AnyFunctions = None,
    weights: bytes | Mapping[str, Array] | None = None,
    **options: Any,
) -> Library:
    """Builds a loaded model, a file, the text of a graph JSON, or a graph made by hand.

    functions, weights  as in load()
    options             as in Model.build()
    Errors              BuildError, LimitError
    """
    return _model_of(what, functions, weights).build(out, **options)


def _model_of(
    what: Model | Graph | str | Path,
    functions: AnyFunctions,
    weights: bytes | Mapping[str, Array] | None,
) -> Model:
    if isinstance(what, Model):
        return what
    if isinstance(what, Graph):
        parts = [what.dump().encode()]
        parts += [what.constants[name].tobytes() for name in sorted(what.constants)]
        digest = hashlib.sha256(b"".join(parts)).hexdigest()
        return Model(what.source, what, "litert", digest)
    if isinstance(what, Path) or not what.lstrip().startswith("{"):
        return load(what, functions=functions, weights=weights)
    from pybuild.frontends import graphjson

    data = what.encode()
    graph = graphjson.load("graph.json", data, weights, functions)
    return Model("graph.json", graph, "litert", hashlib.sha256(data).hexdigest())
