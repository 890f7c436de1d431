"""--name: one for the tree, or OLD=NEW for a model among several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pybuild.errors import BuildError, Problem
from pybuild.errors import fitting as close

OPTION = "--name"


def chosen_names(
    paths: Sequence[str], given: Sequence[str]
) -> tuple[str | None, dict[str, str]]:
    """The name of the whole tree if one is given, and names of models by path.

    OLD is a model's path, its file's name, or that without its suffix.

    Errors  BuildError for an OLD that is not a model, or several
    """
    whole: str | None = None
    names: dict[str, str] = {}
    found: list[Problem] = []
    for text in given:
        old, equals, new = text.rpartition("=")
        if not equals:
            if whole is not None:
                found.append(
                    Problem(OPTION, f"'{whole}' and '{text}' both name the tree")
                )
            whole = text
            continue
        fitting = [p for p in paths if old in (p, Path(p).name, Path(p).stem)]
        if len(fitting) == 1:
            names[fitting[0]] = new
        elif fitting:
            what = f"'{old}' is {len(fitting)} models"
            found.append(Problem(OPTION, what, f"one of {', '.join(fitting)}"))
        else:
            hint = close(old, [Path(p).name for p in paths])
            found.append(Problem(OPTION, f"there is no model '{old}'", hint))
    if found:
        raise BuildError.of(found)
    return whole, names
