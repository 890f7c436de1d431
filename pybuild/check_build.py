"""A build against a reference from Python, as `crt check` does it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pybuild.entry import Buildable, Data, build
from pybuild.errors import UsageError
from pybuild.library import Library
from pybuild.progress import Progress, silent
from pybuild.quantisation.samples import Samples, samples_of
from pybuild.verify.check import CheckResult
from pybuild.verify.check import check as check_here

HOST = "host"


def check(
    what: Library | Buildable,
    data: Data | None = None,
    labels: ArrayLike | os.PathLike[str] | None = None,
    *,
    on: str = HOST,
    ref: str = "auto",
    backends: Sequence[str] = (),
    samples: int = 20,
    per_layer: bool = False,
    seed: int = 0,
    progress: Progress = silent,
    **options: Any,
) -> CheckResult:
    """Runs seeded inputs, or your own samples, through a build and a reference.

    check(library, "test.npz").classes.right("c")

    data     as quantise() takes it; None: `samples` seeded inputs
    labels   the class of each sample, an array or a file; None: those of `data`
    on       "host"; a board of `crt boards`, simulated; or where firmware serves the
             model, as pybuild.rpc.connect takes it: "serial:/dev/ttyUSB0,921600"
    ref, backends, per_layer  as crt check --help says; on boards this machine is the
             reference
    progress  called with the samples that are done, and all of them
    options  as Model.build(), of a model that is not built yet
    Errors   BuildError; pybuild.rpc.RemoteError where the line or board is not there
    """
    library = what if isinstance(what, Library) else build(what, **options)
    own = _own(library, data, labels)
    path = _file(library)
    if on == HOST:
        told = library.model.quantisation is not None or path is None
        chosen = "numpy" if told and ref == "auto" else ref
        where = path or Path(library.model.path)
        return check_here(
            where, library, backends, chosen, samples, per_layer, seed, progress, own
        )
    if ":" in on:
        from pybuild.rpc.check import check_remote

        return check_remote(
            on, library, library.model.path, samples, seed, own, progress
        )
    from pybuild.boards.check import check_on_board
    from pybuild.boards.device import open_device

    device = open_device(on, "auto", "auto", "", library.options.optimise)
    made = check_on_board(
        device, library, library.model.path, samples, per_layer, seed, own
    )
    return made.result


def _own(
    library: Library,
    data: Data | None,
    labels: ArrayLike | os.PathLike[str] | None,
) -> Samples | None:
    """Errors  BuildError with everything that is wrong"""
    if data is None:
        if labels is not None:
            raise UsageError("labels", "are of data, and none is given")
        return None
    graph = library.plan.graph
    graph = library.of_window() if graph.windows else graph
    if isinstance(labels, str | os.PathLike):
        return samples_of(graph, data, Path(labels), "data")
    known = None if labels is None else np.asarray(labels)
    return samples_of(graph, data, known, "data")


def _file(library: Library) -> Path | None:
    """The model's file, if it still is what was loaded; None: it came as bytes."""
    path = Path(library.model.path)
    named = path.parent != Path()  # what came as bytes has no folder
    try:
        same = hashlib.sha256(path.read_bytes()).hexdigest() == library.model.digest
    except OSError:
        return None
    return path if same or named else None
