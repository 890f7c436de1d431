"""Parameter files, as in tvm.runtime.params."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pybuild.dtype import Array
from pybuild.files.read import read_bytes
from pybuild.host.ndarray import NDArray, ndarray
from pybuild.package.folder import write_file
from pybuild.params.blob import read_blob, write_blob


def save_param_dict(params: Mapping[str, Array]) -> bytearray:
    """Arrays as a blob, in the order of their names."""
    return bytearray(write_blob(params, "parameters"))


def load_param_dict(data: bytes | bytearray) -> dict[str, NDArray]:
    """The parameters in a TVM blob.

    Errors  BuildError for damaged bytes
    """
    return {n: ndarray(v) for n, v in read_blob(bytes(data), "parameters").items()}


def save_param_dict_to_file(params: Mapping[str, Array], path: str | Path) -> None:
    """Writes arrays to a file as a blob."""
    write_file(Path(path), bytes(save_param_dict(params)))


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """The parameters in a file with a TVM blob.

    Errors  BuildError for damaged bytes
    """
    return load_param_dict(read_bytes(path))
