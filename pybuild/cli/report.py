"""`crt report`: what a model, or a folder that was built, costs, as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pybuild
from pybuild.cli import boards
from pybuild.cli.models import built
from pybuild.cli.output.progress import working
from pybuild.errors import BuildError, UsageError
from pybuild.files.parse import Unreadable, parse_json
from pybuild.files.read import REPORT as MOST_REPORT
from pybuild.files.read import read_bytes
from pybuild.files.say import say
from pybuild.package.folder import REPORT, write_file

if TYPE_CHECKING:
    from pybuild.html.samples import SampleFacts

Outcome = tuple[int, dict[str, Any]]


def report(args: argparse.Namespace) -> Outcome:
    """Writes the page; --json: its data."""
    from pybuild.html.page import IMAGE, page

    path = Path(args.model)
    data = _of_folder(path, args) if path.is_dir() else _of_model(args)
    out = Path(args.out)
    if "image" in data:
        write_file(out, page(data["image"]["name"], data, IMAGE))
    else:
        write_file(out, page(data["report"]["name"], data))
    if not path.is_dir():
        boards.say_target(args)
    if not args.json:
        say(f"wrote {out}")
    return 0, data


def _of_model(args: argparse.Namespace) -> dict[str, Any]:
    from pybuild.html.data import of_library

    library = built(args, args.model)
    measured = None
    if args.on != boards.HOST:
        _, measured = boards.bench(_silent(args), library)
    samples = samples_of_page(args, library)
    with working(f"drawing {Path(args.model).name}"):
        return of_library(library, measured, samples)


def samples_of_page(
    args: argparse.Namespace, library: pybuild.Library
) -> SampleFacts | None:
    """The facts about the samples of --data, for the page.

    Errors  BuildError for --labels alone, or samples that do not fit
    """
    if args.labels and not args.data:
        raise UsageError("--labels", "needs --data")
    with working(f"running the samples of {library.name}") as progress:
        return library.sample_facts(args.data, args.labels, progress)


def _silent(args: argparse.Namespace) -> argparse.Namespace:
    added = {"json": True, "seed": 0, "port": None}
    return argparse.Namespace(**{**vars(args), **added})


def _of_folder(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The report of a built folder.

    Errors  BuildError for a folder whose report.json does not say enough
    """
    from pybuild.html.checked import checked_image
    from pybuild.html.data import of_report
    from pybuild.html.image_data import of_image_report

    unused = [f"--{word}" for word in args.given if word not in ("out", "project")]
    if unused:
        what = f"is a built folder: {unused[0]} does not apply to it"
        raise BuildError(str(folder), what, "give the model's file")
    facts = _facts(folder)
    if isinstance(facts, dict) and "memory" in facts and "models" in facts:
        return of_image_report(checked_image(folder / REPORT, facts))
    return of_report(report_of_folder(folder))


def report_of_folder(folder: Path) -> dict[str, Any]:
    """Its report.json.

    Errors  BuildError where it does not say enough
    """
    from pybuild.html.checked import checked

    return checked(folder / REPORT, _facts(folder))


def _facts(folder: Path) -> Any:
    """The content of a folder's report.json.

    Errors  BuildError where there is none
    """
    try:
        return parse_json(read_bytes(folder / REPORT, MOST_REPORT))
    except FileNotFoundError:
        what, hint = f"has no {REPORT}", "a folder that crt build has written"
        raise BuildError(str(folder), what, hint) from None
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise BuildError(str(folder / REPORT), what) from None
    except Unreadable as error:
        raise BuildError(str(folder / REPORT), error.what) from None
