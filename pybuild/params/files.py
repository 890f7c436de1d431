"""Parameter files by their kind: TVM's blob, our image, numpy's .npz.

What is read is told by its first bytes, what is written by its name.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import PurePath

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, UsageError
from pybuild.params.blob import is_blob, read_blob, write_blob
from pybuild.params.budget import Budget
from pybuild.params.codecs import Codec
from pybuild.params.image_read import is_image, read_image
from pybuild.params.image_write import plain, write_image

# suffix of a file -> its kind
KINDS = {".params": "blob", ".crtp": "image", ".npz": "npz"}
_HINT = "one of .params (TVM's blob), .crtp (image), .npz (numpy)"


def kind_of(data: bytes, source: str) -> str:
    """ "blob", "image" or "npz".

    Errors  BuildError for other bytes
    """
    if is_blob(data):
        return "blob"
    if is_image(data):
        return "image"
    if data[:4] == b"PK\x03\x04":
        return "npz"
    raise BuildError(source, "holds no parameters that are known here", _HINT)


def read_arrays(data: bytes, source: str) -> dict[str, Array]:
    """The arrays of any parameter file, in the order of their names.

    Errors  BuildError for damaged files, and images of a plan's own layouts
    """
    match kind_of(data, source):
        case "blob":
            arrays = read_blob(data, source)
        case "image":
            image = read_image(data, source)
            image.parameters()
            arrays = {e.name: image.value(e.name) for e in image.entries}
        case _:
            arrays = _read_npz(data, source)
    return dict(sorted(arrays.items()))


def write_arrays(
    arrays: Mapping[str, Array], path: str, codec: Codec | None = None, align: int = 16
) -> bytes:
    """The bytes of a file of the kind that `path` names; codec, align: of images.

    Errors  BuildError for another suffix, or arrays that the kind cannot hold
    """
    name = PurePath(path).name
    match KINDS.get(PurePath(path).suffix.lower()):
        case "blob":
            return write_blob(arrays, name)
        case "image":
            return write_image(plain(arrays, name), codec, align, source=name)
        case "npz":
            return _write_npz(arrays)
        case _:
            raise UsageError(name, "is not a name of a parameter file", _HINT)


def _read_npz(data: bytes, source: str) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            Budget(source, len(data)).take_archive(packed)
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except BuildError:
        raise
    except Exception as error:  # of zlib, zipfile, numpy and the words of its headers
        raise BuildError(source, f"is a damaged .npz file: {error}") from None
    for name, value in found.items():
        if not isinstance(value, np.ndarray):  # of other members numpy gives the bytes
            what = f"is a damaged .npz file: '{name}' is not an array"
            raise BuildError(source, what)
    return found


def _write_npz(arrays: Mapping[str, Array]) -> bytes:
    """Like numpy.savez, but without the time of day: equal arrays, equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in sorted(arrays.items()):
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), entry.getvalue())
    return out.getvalue()
