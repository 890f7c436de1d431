"""One call of the command: reads options, loads models, runs the verb.

Loaded once the words are read: help and completion come at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from pybuild.cli.models import also_wrong, located
from pybuild.cli.options import values
from pybuild.cli.project import jobs
from pybuild.cli.trees import build
from pybuild.cli.verbs import VERBS
from pybuild.errors import BuildError
from pybuild.options.option import of_words
from pybuild.options.table import VERBS as OPTIONS


def done(args: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """The verb's exit code and facts.

    Errors  BuildError with everything that is wrong
    """
    known = OPTIONS.get(args.verb)
    if known is None or args.verb in ("compare", "sweep"):  # each side, each row
        return VERBS[args.verb](args)
    made = [_values(job, known) for job in jobs(args)]
    if args.verb == "build":
        return build(made)
    with located(made[0]):
        return VERBS[args.verb](made[0])


def _values(job: argparse.Namespace, known: Sequence[type]) -> argparse.Namespace:
    """The options of a job with their values, and of the models of an image."""
    made = values(job, of_words(*known))
    made.members = [(name, _values(each, known)) for name, each in job.members]
    if made.wrong:
        with located(made):
            raise BuildError.of([*also_wrong(made), *made.wrong])
    return made
