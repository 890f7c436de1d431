"""Models as the command line asks for them: read, quantised, planned."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pybuild
from pybuild.cli import boards
from pybuild.cli.names import chosen_names
from pybuild.cli.options import chosen
from pybuild.cli.output.progress import working
from pybuild.cli.quantise import quantised
from pybuild.errors import USAGE, BuildError, Problem, UsageError
from pybuild.files.say import say
from pybuild.front import read_front, with_front
from pybuild.options.option import of_words
from pybuild.options.table import BuildOptions, LoadOptions, QuantiseOptions
from pybuild.select.build_seconds import in_words
from pybuild.select.devices import table_of

# of a build, which is said beforehand from there on
LONG_SECONDS = 10.0


def built(args: argparse.Namespace, path: str) -> pybuild.Library:
    """The model, planned with the options of the command line."""
    boards.must_be_here(args)
    whole, names = chosen_names([path], args.name)
    with working(f"building {Path(path).name}") as progress:
        try:
            model = loaded(args, path)
        except BuildError as error:
            raise error.with_more(_wrong_options(args)) from None
        name = names.get(path, whole)
        say_if_long({Path(path).name: model}, options(args)["target"])
        return model.build(name=name, progress=progress, **options(args))


def say_if_long(models: Mapping[str, pybuild.Model], target: Any) -> None:
    """Prints on stderr, before a long build begins, how long it will take."""
    seconds = sum(model.build_seconds(target) for model in models.values())
    if seconds > LONG_SECONDS:
        layers = sum(len(model.graph.nodes) for model in models.values())
        said = f"{', '.join(models)}: {layers:,} layers, about {in_words(seconds)}"
        say(f"note: {said}", error=True)


def loaded(args: argparse.Namespace, path: str, alone: bool = True) -> pybuild.Model:
    """alone: it is built next, which says what no kernel is for

    Errors  BuildError with every problem of the model
    """
    kept = args.state
    first = {} if args.quantise else kept  # samples give what is state later
    front = args.fronts.get(path)
    later = bool(args.quantise) or first != kept
    told = {**chosen(LoadOptions, args), "state": first}
    told["front"] = None if later else front
    model = pybuild.load(path, **told)
    problems = [] if alone and not args.quantise else model.problems()
    if problems:
        raise BuildError.of(problems)
    made = quantised(args, model)
    made = made if first else made.with_state(kept)
    if later and front:
        made = with_front(made, read_front(front))
    return made


def _wrong_options(args: argparse.Namespace) -> tuple[Problem, ...]:
    """The problems of the table of devices, whatever the model is."""
    try:
        table_of(options(args)["target"])
    except BuildError as error:
        return error.problems
    return ()


def options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of Model.build besides a name."""
    own = boards.target_of(args)
    target = {0: own, **args.device} if args.device else own
    return {**chosen(BuildOptions, args), "target": target}


def also_wrong(args: argparse.Namespace) -> list[Problem]:
    """The problems of models besides `args.wrong`; nothing is planned."""
    found: list[Problem] = []
    wrong = {problem.where for problem in args.wrong}
    if not wrong & {one.where for one in of_words(QuantiseOptions)}:
        args.quantise = None  # sound, and takes its time
    for path in args.models if args.verb == "build" else [args.model]:
        try:
            found += loaded(args, path).problems(**options(args))
        except BuildError as error:
            found += error.problems
    return [problem for problem in found if problem not in args.wrong]


@contextmanager
def located(args: argparse.Namespace) -> Iterator[None]:
    """Options of a project file are named by their line there, if they are wrong."""
    try:
        yield
    except BuildError as error:
        origin = {f"--{word}": where for word, where in args.origin.items()}
        if not any(problem.where in origin for problem in error.problems):
            raise
        moved = [
            Problem(origin[p.where], f"{p.where[2:]}: {p.what}", p.hint)
            if p.where in origin
            else p
            for p in error.problems
        ]
        kind = UsageError if error.exit_code == USAGE else BuildError
        raise kind.of(moved) from None


def raise_all(errors: list[BuildError]) -> None:
    """Raises one exception for all; its exit code is the lowest: an invalid model
    first."""
    if errors:
        worst = min(errors, key=lambda error: error.exit_code)
        found: list[Problem] = [p for error in errors for p in error.problems]
        raise type(worst).of(dict.fromkeys(found))
