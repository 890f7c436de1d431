"""The files of a job as bytes, for workers that have another disk, and there again as
files.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pybuild.files.read import SAMPLES, read_bytes
from pybuild.files.result_cache import files_below
from pybuild.sweeps.job import Job, key_of


def packed(job: Job) -> dict[str, bytes]:
    """The model with what lies beside it, and samples: a folder for each, by number."""
    model = Path(job.path)
    beside = [model, model.with_suffix(".params"), *_external(model)]
    found = {
        f"0/{path.relative_to(model.parent).as_posix()}": read_bytes(path)
        for path in beside
        if path.is_file()
    }
    for number, text in enumerate(job.files, 1):
        top = Path(text)
        for name, file in files_below(top):
            found[f"{number}/{top.name}/{name}".rstrip("/")] = read_bytes(file, SAMPLES)
    return found


def _external(model: Path) -> list[Path]:
    """Files that hold tensors of a .onnx."""
    if model.suffix != ".onnx":
        return []
    import onnx

    proto = onnx.load(model, load_external_data=False)
    names = {
        entry.value
        for tensor in proto.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [model.parent / name for name in sorted(names)]


def unpacked(job: Job, files: Mapping[str, bytes]) -> Job:
    """The job with the paths of these files, which are written once for a process."""
    names = tuple(sorted(files))
    digest = key_of({"source": job.source, "measure": job.measure, "names": names})
    folder = _home() / digest
    if not folder.exists():
        partial = Path(tempfile.mkdtemp(dir=_home()))
        for name in names:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_bytes(files[name])
        partial.rename(folder)
    moved = {
        text: str(folder / str(number) / Path(text).name)
        for number, text in enumerate(job.files, 1)
    }
    here = {moved[text]: content for text, content in job.files.items()}
    groups: dict[str, Any] = {
        group: {n: moved.get(str(v), v) for n, v in getattr(job, group).items()}
        for group in ("load", "quantise", "measure")
    }
    path = str(folder / "0" / Path(job.path).name)
    return replace(job, path=path, files=here, **groups)


@functools.cache
def _home() -> Path:
    """The temporary folder of this process, which is deleted when it ends."""
    folder = tempfile.mkdtemp(prefix="crt-sweep-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
