"""`crt compare A B`: two builds side by side, of models with options or of folders."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pybuild.cli.options import values
from pybuild.cli.project import jobs
from pybuild.cli.report import report_of_folder
from pybuild.errors import UsageError
from pybuild.files.say import say
from pybuild.options.option import of_words
from pybuild.options.pages import CompareOptions
from pybuild.options.table import VERBS
from pybuild.package.folder import write_file

Outcome = tuple[int, dict[str, Any]]

_OWN = ("verb", "one", "other", "json", "long", "out")


def compare(args: argparse.Namespace) -> Outcome:
    """A table; a page with -o; --json: the comparison.

    Errors  BuildError of either build
    """
    from pybuild.cli.output import tables
    from pybuild.html.comparison import compared, comparison_page

    own = values(args, of_words(CompareOptions))
    if own.wrong:
        raise UsageError.of(own.wrong)
    one, other = (_report(args, words) for words in (args.one, args.other))
    found = compared(one, other)
    if not args.json:
        tables.show(comparison_page(found))
    if own.out is not None:
        from pybuild.html.page import COMPARISON, page

        data = {"schema": 1, "comparison": asdict(found), "one": one, "other": other}
        title = " and ".join(found.names)
        write_file(Path(own.out), page(title, data, COMPARISON))
        if not args.json:
            say(f"wrote {own.out}")
    return 0, asdict(found)


def _report(args: argparse.Namespace, words: str) -> dict[str, Any]:
    """The report of one side: a folder; or a file or a name in crt.toml, followed by
    its own options, which override those of the command."""
    from pybuild.cli.models import built, located
    from pybuild.cli.parser import parsed

    if Path(words).is_dir():
        return report_of_folder(Path(words))
    parts = [words] if Path(words).exists() else shlex.split(words)
    mine = parsed(["inspect", *parts])
    shared = {n: v for n, v in vars(args).items() if n not in _OWN}
    side = argparse.Namespace(**{**shared, **vars(mine), "json": True})
    job = values(jobs(side)[0], of_words(*VERBS["inspect"]))
    with located(job):
        if job.wrong:
            raise UsageError.of(job.wrong)
        report: dict[str, Any] = built(job, job.model).report.to_json()
    return report
