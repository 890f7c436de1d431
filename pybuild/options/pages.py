"""Options of the HTML pages."""

from __future__ import annotations

from pybuild.options import kinds
from pybuild.options.option import option
from pybuild.records import dataclass


@dataclass(frozen=True)
class SampleOptions:
    """Samples for the page of a build."""

    data: str | None = option(
        None, kinds.text("FILE", "file"), "page",
        "samples for the page's accuracy and error by layer: .npz, .npy, .csv or a "
        "folder of .npy",
    )  # fmt: skip
    labels: str | None = option(
        None, kinds.text("FILE", "file"), "page",
        "the class of each sample, if --data does not have it",
    )  # fmt: skip


@dataclass(frozen=True)
class ReportOptions:
    """crt report."""

    out: str = option(
        "report.html", kinds.file(".html"), "report",
        "the page to write; default: report.html", short="o",
    )  # fmt: skip


@dataclass(frozen=True)
class CompareOptions:
    """crt compare."""

    out: str | None = option(
        None, kinds.file(".html"), "compare", "also draw it as a page", short="o"
    )
