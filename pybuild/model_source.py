"""The forms of a model that a user can pass: a path, bytes, text, a message of onnx, a
program of torch.export; each becomes bytes with a name.
"""

from __future__ import annotations

import os
import warnings
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.errors import BuildError, BuildWarning, close_to
from pybuild.files.read import read_bytes
from pybuild.frontends.formats import (
    JSON,
    ONNX,
    PT2,
    SUFFIXES,
    format_of,
    refuse_folder,
)
from pybuild.options.recipe import Recipe
from pybuild.options.recipe import Source as FileFact
from pybuild.options.table import LoadOptions
from pybuild.records import dataclass

if TYPE_CHECKING:
    from onnx import ModelProto

    Source = str | os.PathLike[str] | bytes | bytearray | memoryview | ModelProto
else:
    Source = Any

_MOST = 200  # characters of a path in a message
_LISTED = 1000  # names of a folder that are looked at for a hint
# what a network in memory is exported with, by the module of its class
_EXPORTS = {
    "torch": "pybuild.load(torch.export.export(model.eval(), (example_input,)))",
    "keras": "model.export('model.onnx', format='onnx')",
    "tensorflow": "tf.lite.TFLiteConverter.from_keras_model(model).convert()",
    "jax": "jax2onnx, or jax2tf and TensorFlow's converter",
}


@dataclass(frozen=True)
class Given:
    """The bytes of a model.

    where   its path, or a name for what has none
    folder  where further files of it lie; None: nowhere
    """

    where: str
    data: bytes
    format: str
    folder: Path | None


def read_source(what: Source) -> Given:
    """The model that the user passed, as bytes with a name.

    Errors  BuildError for what cannot be read, or is of another format
    """
    if isinstance(what, bytes | bytearray | memoryview):
        data = bytes(what)
        kind = format_of(data, "model")
        suffix = next(end for end, one in SUFFIXES.items() if one == kind)
        return Given(f"model{suffix}", data, kind, None)
    if isinstance(what, str) and what.lstrip().startswith("{"):
        return Given("graph.json", what.encode(), JSON, None)
    if isinstance(what, str | os.PathLike):
        return _of_file(os.fspath(what))
    if type(what).__name__ == "ModelProto":
        try:
            return Given("model.onnx", what.SerializeToString(), ONNX, None)
        except ValueError as error:
            hint = "onnx.save with save_as_external_data, and give the path"
            raise BuildError("ModelProto", f"is too large: {error}", hint) from None
    if type(what).__name__ == "ExportedProgram":
        from pybuild.frontends.torch import of_torch

        return Given("program.pt2", of_torch(what), PT2, None)
    raise _no_model(what)


def _of_file(where: str) -> Given:
    path, shown = Path(where), where
    if len(where) > _MOST or not where.isprintable():
        shown = repr(where[:40]) + "…" * (len(where) > 40)
    try:
        data = read_bytes(path)
    except IsADirectoryError as error:
        refuse_folder(path)
        raise BuildError(shown, f"cannot be read ({error.strerror})") from None
    except FileNotFoundError as error:
        what = f"cannot be read ({error.strerror})"
        raise BuildError(shown, what, _near(path)) from None
    except OSError as error:
        raise BuildError(shown, f"cannot be read ({error.strerror})") from None
    kind = format_of(data, where)
    said = SUFFIXES.get(path.suffix.lower(), kind)
    if said != kind:
        what = f"{path.name}: is not {said} but {kind}, and is read as that"
        warnings.warn(what, BuildWarning, stacklevel=4)
    return Given(where, data, kind, path.parent)


def _no_model(what: Any) -> BuildError:
    kind = type(what)
    hint = "a path, bytes, an onnx.ModelProto or the text of a graph JSON"
    if hasattr(what, "read"):
        hint = "its path, or the bytes: load(file.read())"
    for base in kind.__mro__:
        hint = _EXPORTS.get(base.__module__.partition(".")[0], hint)
    if what is None:
        return BuildError("", "None is not a model", hint)
    return BuildError(f"{kind.__module__}.{kind.__qualname__}", "is not a model", hint)


def _near(path: Path) -> str:
    """A hint for a path at which there is no file: the model whose name is nearest."""
    if not path.parent.is_dir():
        return f"there is no folder '{path.parent}'"
    with os.scandir(path.parent) as entries:
        names = [entry.name for entry in islice(entries, _LISTED)]
    models = [name for name in names if Path(name).suffix.lower() in SUFFIXES]
    close = close_to(path.name, models)
    return f"did you mean '{path.parent / close}'?" if close else ""


def recipe_of(fact: FileFact, asked: LoadOptions, what: Source, more: object) -> Recipe:
    """The recipe of a model; more: functions and weights that are in no file."""
    written = isinstance(what, str) and what.lstrip().startswith("{")
    is_file = isinstance(what, str | os.PathLike) and not written
    if not is_file or more != (None, None):
        return Recipe(None, asked)
    return Recipe(fact, asked)
