"""A user's samples, and the file of a build that an interpreter can read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pybuild.dtype import Array
from pybuild.errors import UsageError
from pybuild.package.provenance import Origin
from pybuild.quantisation.samples import Samples, samples_of
from pybuild.verify.samples import Inputs

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

Labels = ArrayLike | os.PathLike[str]


def given_samples(library: Library, data: Any, labels: Labels | None) -> Samples | None:
    """The samples as inputs of the model, for a stream as whole windows; None: there is
    no data.

    data, labels  as pybuild.check takes them
    Errors        BuildError with everything that is wrong
    """
    if data is None:
        if labels is not None:
            raise UsageError("labels", "need data, but none is given")
        return None
    graph = library.plan.graph
    graph = library.of_window() if graph.windows else graph
    if isinstance(labels, str | os.PathLike):
        return samples_of(graph, data, Path(labels), "data", finite=False)
    known = None if labels is None else np.asarray(labels)
    return samples_of(graph, data, known, "data", finite=False)


def file_of(model: Origin) -> Path | None:
    """The model's file, if it still is what was loaded; None: it came as bytes."""
    path = Path(model.path)
    named = path.parent != Path()  # what came as bytes has no folder
    try:
        same = hashlib.sha256(path.read_bytes()).hexdigest() == model.digest
    except OSError:
        return None
    return path if same or named else None


def file_and_reference(model: Origin, ref: str = "auto") -> tuple[Path, str]:
    """The file, and whose outputs are compared: interpreters of the file know nothing
    of what was quantised here, or came as bytes.
    """
    path = file_of(model)
    told = model.quantisation is not None or path is None
    chosen = "numpy" if told and ref == "auto" else ref
    return path or Path(model.path), chosen


def inputs_of(own: Samples | None) -> list[Inputs]:
    """Each of a user's samples by itself; [] if there are none."""
    return [] if own is None else [one_of(chunk) for chunk in own.chunks(1)]


def one_of(chunk: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.ascontiguousarray(value[0]) for name, value in chunk.items()}
