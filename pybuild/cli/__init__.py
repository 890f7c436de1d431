"""The command `crt`: options in, exit code out; one JSON object with --json.

Every verb is a function in verbs.py; knows nothing of how a model is built.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from pybuild.cli import startup  # noqa: F401
from pybuild.cli.parser import parsed
from pybuild.errors import INVALID, USAGE, BuildError, BuildWarning, Problem
from pybuild.files.say import say, say_json

INTERRUPTED = 130
UNREAD = 141  # as of a process that SIGPIPE ends


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb: 0 ok, 1 mismatch, 2 model not supported or invalid, 3 a limit
    exceeded, 64 usage, 130 interrupted, 141 nobody reads on. Never raises for bad
    input.
    """
    _ready_streams()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks, not a person
        from pybuild.cli.completion import answer

        answer()
    try:
        code = _answered(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has gone: nothing more to say, and nothing at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _ready_streams() -> None:
    """Replaces streams that the caller has closed by one that discards output."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # of names that a console cannot show
            stream.reconfigure(errors="backslashreplace")


def _answered(words: Sequence[str]) -> int:
    """The exit code; help and completion are printed while words are read."""
    try:
        args = parsed(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    with warnings.catch_warnings():
        warnings.simplefilter("always", BuildWarning)
        warnings.showwarning = _warned
        code, facts = _run(args)
    if args.json:
        say_json(facts)
    return code


def _warned(message: Warning | str, *where: Any, **more: Any) -> None:
    """Prints a warning as one line on stderr; warnings of other packages are
    dropped."""
    if isinstance(message, BuildWarning):
        say(f"warning: {message}", error=True)


def _run(args: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """The verb's exit code and facts; every problem is on stderr."""
    from pybuild.cli.work import done

    try:
        return done(args)
    except BuildError as error:
        return error.exit_code, _failed(error.problems)
    except BrokenPipeError:
        raise
    except OSError as error:
        return INVALID, _failed([_of_file(error)])


def _failed(problems: Sequence[Problem]) -> dict[str, Any]:
    """Says every problem on stderr; the JSON form of them."""
    for problem in problems:
        say(problem, error=True)
    plain = [{"where": p.where, "what": p.what, "hint": p.hint} for p in problems]
    return {"error": plain}


def _of_file(error: OSError) -> Problem:
    what = (error.strerror or str(error)).lower()
    return Problem(str(error.filename or ""), what)
