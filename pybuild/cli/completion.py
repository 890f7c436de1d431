"""Completion of words by the shell, from the table of options; argcomplete does it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from pybuild.cli.parser import commands, parser
from pybuild.errors import BuildError
from pybuild.options.kinds import Kind
from pybuild.options.option import of_words
from pybuild.options.table import VERBS
from pybuild.project.read import find_project, read_project

Completer = Callable[..., Iterable[str]]


def answer() -> None:
    """Tells the shell what fits, and ends the process."""
    import argcomplete

    top = parser()
    for name, command in commands(top).items():
        for one in of_words(*VERBS.get(name, ())):
            _complete(command, f"--{one.word}", _completer(one.kind))
        for action in command._actions:
            if action.dest in ("model", "models", "board", "folder", "file"):
                words = _models if "model" in action.dest else None
                kind = _boards if action.dest == "board" else words
                action.completer = _with_files(kind)  # type: ignore[attr-defined]
    argcomplete.autocomplete(top, exclude=["-h"])


def _complete(command: argparse.ArgumentParser, word: str, how: Completer) -> None:
    action = command._option_string_actions[word]
    action.completer = how  # type: ignore[attr-defined]


def _completer(kind: Kind) -> Completer:
    if kind.files:
        return _with_files(None, only_folders=kind.files == "folder")
    return lambda **_: kind.known()


def _with_files(known: Completer | None, only_folders: bool = False) -> Completer:
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    files = DirectoriesCompleter() if only_folders else FilesCompleter()

    def found(prefix: str, **more: object) -> list[str]:
        words = list(known(prefix=prefix, **more)) if known else []
        return [*words, *files(prefix=prefix, **more)]

    return found


def _models(**_: object) -> list[str]:
    """Names in the project file of this folder."""
    try:
        path = find_project()
        project = None if path is None else read_project(path, outside=True)
    except (BuildError, OSError):
        return []
    return [] if project is None else [*project.models, *project.images]


def _boards(**_: object) -> Iterable[str]:
    from pybuild.targets.board import board_names

    return board_names()
