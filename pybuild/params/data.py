"""Arrays as users keep them: .npz and parameter files, one .npy, a folder of .npy, CSV.

What a file is is told by its bytes. Knows inputs by name and shape, no graph.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.files.read import SAMPLES, read_bytes
from pybuild.params.files import read_arrays

LABELS = "labels"
Shapes = Mapping[str, tuple[int, ...]]
_NPY = b"\x93NUMPY"
_UNNAMED = "arr_0"  # what numpy.savez calls an array without a name
_FORMS = ".npz, .csv, .npy or a folder of .npy"


def read_data(path: Path, inputs: Shapes) -> dict[str, Array]:
    """Arrays by the names of inputs, and `labels` if there are any.

    NAME.npy in a folder is an input of all samples; in a folder NAME each file is a
    sample; so it is in a folder itself for a model of one input, in the order of names.

    Errors  BuildError
    """
    if path.is_dir():
        return _of_folder(path, inputs)
    data = _bytes(path)
    if data.startswith(_NPY):
        return {_only(path, inputs): _npy(path.name, data)}
    text = _text(data)
    if text is not None:
        return _of_table(path, text, inputs)
    found = read_arrays(data, path.name)
    if set(found) - {LABELS} == {_UNNAMED} and len(inputs) == 1:
        found[next(iter(inputs))] = found.pop(_UNNAMED)
    return found


def read_labels(path: Path) -> Array:
    """One number for each sample: .npy, .npz with `labels`, or text with one a line.

    Errors  BuildError
    """
    data = _bytes(path)
    if data.startswith(_NPY):
        return _npy(path.name, data)
    text = _text(data)
    if text is not None:
        head, values = _table(path.name, text)
        column = head.index(LABELS) if LABELS in head else -1
        return _whole(values[:, column])
    found = read_arrays(data, path.name)
    if LABELS not in found and len(found) != 1:
        raise BuildError(path.name, f"has no array '{LABELS}'")
    return found.get(LABELS, next(iter(found.values())))


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path, SAMPLES)
    except OSError as error:
        raise BuildError(str(path), f"cannot be read ({error.strerror})") from None


def _text(data: bytes) -> str | None:
    """The bytes as text; None: they are not text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if text.strip() and "\0" not in text else None


def _npy(name: str, data: bytes) -> Array:
    try:
        value: Array = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # of numpy and the words of its headers
        raise BuildError(name, f"is a damaged .npy file: {error}") from None
    return value


def _only(path: Path, inputs: Shapes) -> str:
    """The name of the only input.

    Errors  BuildError where there are several inputs
    """
    if len(inputs) != 1:
        what = f"does not say for which input it is, of {', '.join(inputs)}"
        raise BuildError(path.name, what, ".npz, or a folder with NAME.npy for each")
    return next(iter(inputs))


def _of_folder(path: Path, inputs: Shapes) -> dict[str, Array]:
    files = {file.stem: file for file in sorted(path.glob("*.npy"))}
    found: dict[str, Array] = {}
    if LABELS in files:
        found[LABELS] = _npy(LABELS, _bytes(files.pop(LABELS)))
    elif (path / f"{LABELS}.csv").is_file():
        found[LABELS] = read_labels(path / f"{LABELS}.csv")
    for name in inputs:
        if (path / name).is_dir():
            found[name] = _stacked(path / name, sorted((path / name).glob("*.npy")))
    if files and set(files) <= set(inputs):
        return found | {n: _npy(f.name, _bytes(f)) for n, f in files.items()}
    if files:
        found[_only(path, inputs)] = _stacked(path, list(files.values()))
    if not found.keys() & inputs.keys():
        raise BuildError(str(path), "has no .npy files", f"give {_FORMS}")
    return found


def _stacked(folder: Path, files: list[Path]) -> Array:
    """Each file a sample.

    Errors  BuildError for files of several shapes, or none
    """
    values = [_npy(file.name, _bytes(file)) for file in files]
    shapes = {value.shape: file.name for value, file in zip(values, files, strict=True)}
    if len(shapes) != 1:
        each = ", ".join(f"{list(shape)} in {name}" for shape, name in shapes.items())
        what = (
            f"has arrays of several shapes: {each}" if shapes else "has no .npy files"
        )
        raise BuildError(str(folder), what, f"give {_FORMS}")
    return np.stack(values)


def _of_table(path: Path, text: str, inputs: Shapes) -> dict[str, Array]:
    """A line for each sample, its values in the order of the input's; a column that is
    named labels (or label) has the class.
    """
    head, values = _table(path.name, text)
    name = _only(path, inputs)
    shape = inputs[name]
    shape = shape[1:] if shape[:1] == (1,) else shape
    found: dict[str, Array] = {}
    if LABELS in head:
        column = head.index(LABELS)
        found[LABELS] = _whole(values[:, column])
        values = np.delete(values, column, axis=1)
    size = int(np.prod(shape, dtype=np.int64))
    if values.shape[1] != size:
        what = f"has {values.shape[1]} columns of values, '{name}' has {size} values"
        hint = f"a column for each, and one named {LABELS} for classes if there are any"
        raise BuildError(path.name, what, hint)
    return {name: _whole(values).reshape(-1, *shape), **found}


def _table(name: str, text: str) -> tuple[list[str], Array]:
    """Names of the columns, [] without, and float64 [lines, columns].

    Errors  BuildError naming the line
    """
    dialect = ";" if text.count(";") > text.count(",") else ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=dialect) if row]
    head = [] if _numbers(rows[0]) else [cell.strip().lower() for cell in rows[0]]
    head = [LABELS if cell == "label" else cell for cell in head]
    lines: list[list[float]] = []
    for number, row in enumerate(rows[1:] if head else rows, 2 if head else 1):
        values = _numbers(row)
        if values is None or (lines and len(values) != len(lines[0])):
            what = f"line {number} has {len(row)} columns that are not all numbers"
            if values is not None:
                what = f"line {number} has {len(row)} columns, not {len(lines[0])}"
            raise BuildError(name, what, f"give {_FORMS}")
        lines.append(values)
    if not lines:
        raise BuildError(name, "has no numbers", f"give {_FORMS}")
    return head, np.array(lines)


def _numbers(row: list[str]) -> list[float] | None:
    try:
        return [float(cell) for cell in row]
    except ValueError:
        return None


def _whole(values: Array) -> Array:
    """The values as integers, if all are whole numbers."""
    if np.isfinite(values).all() and (values == np.rint(values)).all():
        return values.astype(np.int64)
    return values
