"""The work of a worker: a build, its figures, its report; one at a time in a
process."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pybuild
from pybuild.errors import BuildError, BuildWarning, LimitError, Problem
from pybuild.files.result_cache import tool_digest
from pybuild.front import read_front, with_front
from pybuild.html.data import of_report
from pybuild.library import Library
from pybuild.model import Model
from pybuild.package.totals import totals_of
from pybuild.records import dataclass
from pybuild.sweeps.files import unpacked
from pybuild.sweeps.job import Job, content_of, to_load
from pybuild.sweeps.plan import device_of, labelled, model_digest

_MOST = 4  # models that are kept for the next jobs
_ONE = threading.Lock()


@dataclass(frozen=True)
class Made:
    """figures  of the row; {}: there are none
    report    what its page shows; None: there is none
    problems  why nothing was built; limit: it exceeds one that was given
    kept      whether the next sweep need not try again
    seconds   of the processor that the build took
    """

    figures: Mapping[str, Any]
    report: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    limit: bool = False
    kept: bool = True
    seconds: float = 0.0


def build_job(job: Job, files: Mapping[str, bytes] | None = None) -> Made:
    """Builds a job; never raises: its row says what failed.

    files  of the model and its samples, where the worker has another disk
    """
    with _ONE, warnings.catch_warnings():
        warnings.simplefilter("ignore", BuildWarning)
        begin = spent()
        try:
            if job.tool != tool_digest():
                what = f"the worker has another pybuild ({pybuild.__version__})"
                raise _Elsewhere(job.name, what, "install the same one everywhere")
            figures, report = _built(_here(job, files))
            found = Made(figures, report)
        except _Elsewhere as error:
            found = Made({}, None, error.problems, kept=False)
        except BuildError as error:
            limit = isinstance(error, LimitError)
            found = Made({}, None, error.problems, limit, kept=job.device is None)
        except OSError as error:
            what = f"{error.strerror or error}".lower()
            problem = Problem(str(error.filename or job.name), what)
            found = Made({}, None, (problem,), kept=False)
        except Exception as error:  # a fault of ours costs one row
            what = f"failed with {type(error).__name__}: {error}"
            found = Made({}, None, (Problem(job.name, what),), kept=False)
        return Made(**{**found.__dict__, "seconds": spent() - begin})


def spent() -> float:
    """Seconds of processors, of this process and of those that it has waited for:
    compilers and simulators, too.
    """
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class _Elsewhere(BuildError):
    """Wrong on this worker, at this time."""


# ---- files --------------------------------------------------------------------


def _here(job: Job, files: Mapping[str, bytes] | None) -> Job:
    """The job with paths on this machine.

    Errors  _Elsewhere for a file that is not what the sweep has begun with
    """
    if files is not None:
        job = unpacked(job, files)
    for path, digest in job.files.items():
        try:
            same = content_of(Path(path)) == digest
        except BuildError as error:
            raise _Elsewhere.of(error.problems) from None
        if not same:
            raise _Elsewhere(Path(path).name, "has changed since the sweep began")
    return job


# ---- builds -------------------------------------------------------------------

_models: OrderedDict[tuple[Any, ...], Model] = OrderedDict()


def _model(job: Job) -> Model:
    """Loaded and quantised once for jobs that follow each other."""
    key = job.source
    if key in _models:
        _models.move_to_end(key)
        return _models[key]
    model = pybuild.load(job.path, **to_load(job.load, job.quantise))
    if model_digest(model) != job.model:
        raise _Elsewhere(Path(job.path).name, "has changed since the sweep began")
    if job.quantise:
        rounding = job.build.get("rounding")
        model = pybuild.quantise(model, **job.quantise, rounding=rounding).model
        model = model.with_state(job.load.get("state", {}))
        if "front" in job.load:
            model = with_front(model, read_front(job.load["front"]))
    _models[key] = model
    while len(_models) > _MOST:
        _models.popitem(last=False)
    return model


def _built(job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of the row, and what its page shows."""
    library = _model(job).build(name=job.name, **job.build)
    report = library.report.to_json()
    figures = _estimated(library, report)
    measured = None
    if job.device is not None:
        measured = _counted(job, library)
        counted = _of_board(measured)
        if counted["cycles"] is None and measured["alone"] is None:
            del counted["cycles"]  # no timings of the core: the rough estimate stays
        figures |= counted
    figures["accuracy"], figures["error"] = _quality(job, library)
    noted = library.report.quantisation
    figures["warnings"] = list(noted.warnings) if noted else []
    return figures, of_report(report, measured=measured)


def _estimated(library: Library, report: Mapping[str, Any]) -> dict[str, Any]:
    from pybuild.chips.pace import PACE, cycles_on

    known = report["target"] in PACE and report["target"] != "generic"
    return {
        "target": report["target"],
        **asdict(totals_of(report)),
        "cycles": cycles_on(library.targets[0].name, library) if known else None,
        "macs": report["macs"],
        "board": None,
        "command": report["command"],
    }


def _counted(job: Job, library: Library) -> dict[str, Any]:
    """The figures that a board counts.

    Errors  _Elsewhere where this worker has other tools
    """
    from pybuild.boards.bench import bench_on_board

    device = device_of(job.board, job.build, bool(job.board.get("both")))
    if device.to_json() != job.device:
        what = "this worker has another compiler or simulator"
        raise _Elsewhere(f"--on {job.board['on']}", what, "the same one everywhere")
    return bench_on_board(device, library).to_json()


def _of_board(measured: Mapping[str, Any]) -> dict[str, Any]:
    ram, flash = measured["ram"], measured["flash"]
    shared = measured["alone"] is not None  # by equal cores: from begin to end
    return {
        "ram": ram["arena"] + ram["instance"],
        "flash": flash["weights"] + flash["tables"] + flash["kernels"],
        "code": flash["kernels"],
        "instructions": measured["wall" if shared else "instructions"],
        "cycles": None if shared else measured["cycles"],
        "board": measured["board"],
    }


# ---- quality ------------------------------------------------------------------


def _quality(job: Job, library: Library) -> tuple[float | None, float | None]:
    """Accuracy of 0 to 1, and error of the outputs beside the float network; None: not
    known."""
    noted = library.model.quantisation
    error = noted.error if noted else None
    if "data" in job.measure:
        return _accuracy(job.measure, library), error
    if noted is None or noted.score is None:
        return None, error
    return noted.score.right_quantised / noted.score.samples, error


def _accuracy(measure: Mapping[str, Any], library: Library) -> float:
    """The accuracy of the build's own kernels on this machine.

    Errors  BuildError for samples without labels, or a model that tells no class
    """
    from pybuild.host.lazy_buffers import bind_lazy
    from pybuild.verify.classes import classes_of
    from pybuild.verify.own_samples import inputs_of

    graph = library.plan.graph
    if graph.windows:
        raise BuildError(library.name, "is a stream: its accuracy is not measured")
    own = labelled(graph, measure)
    net = bind_lazy(library.host("llvm"))
    try:
        said = [net(**one) for one in inputs_of(own)]
    finally:
        net.close()
    known = classes_of(graph.outputs[0], {"llvm": said}, own.labels)
    if known is None:
        what = "its first output is one number, not a score for each class"
        raise BuildError(library.name, what, "leave out data")
    return known.right("llvm") / own.count


def plain_problems(found: Made) -> list[dict[str, str]]:
    return [asdict(one) for one in found.problems]
