"""Options of several models, and of the verbs that try many builds: fit and sweep."""

from __future__ import annotations

from pybuild.options import kinds
from pybuild.options.option import option
from pybuild.records import dataclass


@dataclass(frozen=True)
class ImageOptions:
    """pybuild.build_image."""

    exclusive: tuple[tuple[str, ...], ...] = option(
        (), kinds.GROUPS, "several models",
        "models that never run together and can share their memory",
    )  # fmt: skip
    connect: tuple[str, ...] = option(
        (), kinds.names("A.OUT=B.IN"), "several models",
        "use one buffer for an output and another model's input",
    )  # fmt: skip


@dataclass(frozen=True)
class FitOptions:
    """crt fit."""

    latency: float | None = option(
        None, kinds.DURATION, "fit",
        "longest time of an inference, as 50ms or 0.05 (seconds)",
    )  # fmt: skip


@dataclass(frozen=True)
class DataOptions:
    """Samples that measure the accuracy of a build; only for [sweeps.NAME]."""

    data: str | None = option(
        None, kinds.text("FILE", "file"), "sweep", "samples to measure accuracy with"
    )
    labels: str | None = option(
        None, kinds.text("FILE", "file"), "sweep",
        "the class of each sample, if `data` does not have it",
    )  # fmt: skip


@dataclass(frozen=True)
class SweepOptions:
    """crt sweep."""

    out: str | None = option(
        None, kinds.text("DIR", "folder"), "sweep",
        "folder for the table, its page and the builds; default: build/sweep beside "
        "the file", short="o",
    )  # fmt: skip
    outside: bool = option(
        False, kinds.FLAG, "sweep",
        "allow paths in the project file that lead out of its folder, to read or write",
    )  # fmt: skip
    workers: int | None = option(
        None, kinds.count(), "sweep",
        "number of processes that build; default: one for each processor",
    )  # fmt: skip
    scheduler: str | None = option(
        None, kinds.text("ADDRESS"), "sweep",
        "build on the workers of this Dask scheduler, as tcp://HOST:8786",
    )  # fmt: skip
