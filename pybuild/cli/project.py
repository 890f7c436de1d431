"""The command with a project file: models by their names in it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from pybuild.errors import BuildError, UsageError, fitting
from pybuild.front import parted
from pybuild.project.read import OUTSIDE, Entry, Project, find_project, read_project
from pybuild.project.sweeps import Value


def jobs(args: argparse.Namespace) -> list[argparse.Namespace]:
    """One set of arguments for each tree or model, with the project file's options
    where the command line has none.

    origin   of each option the place in that file
    members  of an image the models, by name
    Errors   UsageError with everything that is wrong with the file
    """
    several = args.verb == "build"
    given = args.models if several else [args.model] * (args.model is not None)
    path = find_project(getattr(args, "project", None))
    if path is None:
        if not given:
            hint = "a model's file; or crt.toml here, which crt init MODEL writes"
            raise UsageError(f"crt {args.verb}", "MODEL is missing", hint)
        return [_with(args, {}, given)]
    named = hasattr(args, "project")
    files = all(Path(word).suffix or Path(word).exists() for word in given)
    if given and files and not named:
        return [_with(args, {}, given)]
    project = read_project(path, hasattr(args, OUTSIDE))
    chosen = _chosen(project, given, args.verb)
    if len(chosen) > 1 and hasattr(args, "out"):
        what = f"one folder for {len(chosen)} trees"
        raise UsageError("--out", what, "crt build NAME -o DIR, or out = in the file")
    return [_job(args, project, entry) for entry in chosen]


def _chosen(project: Project, given: list[str], verb: str) -> list[Entry]:
    known = {**project.models, **(project.images if verb == "build" else {})}
    if not given:
        every = project.trees if verb == "build" else project.models
        if verb != "build" and len(every) > 1:
            hint = fitting("", every)
            raise UsageError(f"crt {verb}", "MODEL is missing", hint)
        return list(every.values())
    for word in given:
        if word not in known:
            file = "" if Path(word).exists() else ", and no such file"
            what = f"there is no model '{word}'{file}"
            raise UsageError(project.where, what, fitting(word, known))
    return [known[word] for word in given]


def _job(
    args: argparse.Namespace, project: Project, entry: Entry
) -> argparse.Namespace:
    values = project.values(entry, args.verb)
    members = [(name, project.models[name]) for name in entry.models]
    files = [each.file for _, each in members] or [entry.file]
    made = _with(args, values, files)
    made.members = [
        (name, _with(args, project.values(each, args.verb), [each.file]))
        for name, each in members
    ]
    if not hasattr(made, "name"):
        made.name = [entry.name]
    if args.verb == "build" and not hasattr(made, "out"):
        made.out = str(Path(project.where).parent / "build" / entry.name)
    return made


def _with(
    args: argparse.Namespace, values: Mapping[str, Value], files: list[str]
) -> argparse.Namespace:
    """The command line, followed by the options of the file."""
    said = {word.replace("-", "_"): value.raw for word, value in values.items()}
    made = argparse.Namespace(**{**said, **vars(args)})
    made.origin = {
        word: value.where
        for word, value in values.items()
        if not hasattr(args, word.replace("-", "_"))
    }
    made.members = []
    try:
        pairs = [parted(file, getattr(made, "front", None)) for file in files]
    except BuildError as error:
        raise UsageError.of(list(error.problems)) from None
    made.fronts = {net: front for front, net in pairs if front}
    files = [net for _, net in pairs]
    if args.verb == "build":
        made.models = files
    else:
        made.model = files[0]
    return made
