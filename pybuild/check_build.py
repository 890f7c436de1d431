"""Compares a build with a reference, from Python, as `crt check` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybuild.entry import Buildable, Data, build
from pybuild.library import Library
from pybuild.progress import Progress, silent
from pybuild.verify.check import CheckResult
from pybuild.verify.check import check as check_here
from pybuild.verify.own_samples import Labels, file_and_reference, given_samples

HOST = "host"


def check(
    what: Library | Buildable,
    data: Data | None = None,
    labels: Labels | None = None,
    *,
    on: str = HOST,
    ref: str = "auto",
    backends: Sequence[str] = (),
    samples: int = 20,
    per_layer: bool = False,
    seed: int = 0,
    key_file: str | None = None,
    progress: Progress = silent,
    **options: Any,
) -> CheckResult:
    """Runs seeded inputs, or your own samples, through a build and a reference.

    check(library, "test.npz").classes.right("c")

    data     as quantise() takes it; None: `samples` seeded inputs
    labels   the class of each sample, an array or a file; None: those of `data`
    on       "host"; a board of `crt boards`, simulated; or where firmware serves the
             model, as pybuild.rpc.connect takes it: "serial:/dev/ttyUSB0,921600"
    key_file  the key that a real board has, too, as pybuild.rpc.connect takes it
    ref, backends, per_layer  as crt check --help says; a board is compared with this
             machine, and that with the reference
    progress  called with the samples that are done, and all of them
    options  as Model.build(), of a model that is not built yet
    Errors   BuildError; pybuild.rpc.RemoteError where the line or board is not there
    """
    library = what if isinstance(what, Library) else build(what, **options)
    own = given_samples(library, data, labels)
    if on == HOST:
        where, chosen = file_and_reference(library.model, ref)
        return check_here(
            where, library, backends, chosen, samples, per_layer, seed, progress, own
        )
    if ":" in on:
        from pybuild.rpc.check import check_remote

        path = library.model.path
        return check_remote(on, library, path, samples, seed, own, progress, key_file)
    from pybuild.boards.check import check_on_board
    from pybuild.boards.device import open_device

    asked = library.options
    device = open_device(on, "auto", "auto", "", asked.optimise, cores=asked.cores)
    where, chosen = file_and_reference(library.model, ref)
    made = check_on_board(device, library, where, samples, per_layer, seed, own, chosen)
    return made.result
