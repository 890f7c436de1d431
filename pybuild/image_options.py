"""The options for several models at once, and those that do not apply to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pybuild.emit.tables.names import chosen_prefix
from pybuild.entry import Buildable, model_of
from pybuild.errors import BuildError, Problem, fitting
from pybuild.model import Model
from pybuild.options.table import BuildOptions


def named_models(
    models: Mapping[str, Buildable] | Sequence[Buildable],
) -> dict[str, Model]:
    """The models by their names in the image.

    Errors  BuildError for two of one name, or for anything but models
    """
    if isinstance(models, Mapping):
        return {chosen_prefix(n, ""): model_of(m) for n, m in models.items()}
    if isinstance(models, str | bytes) or not isinstance(models, Iterable):
        what = f"takes several models, not one {type(models).__name__}"
        raise BuildError("build_image", what, "a list, or models by name")
    found: dict[str, Model] = {}
    problems = []
    for model in map(model_of, models):
        made = chosen_prefix(None, model.path)
        if made in found:
            what = f"another model is named '{made}' too"
            problems.append(Problem(model.path, what, "give it a name of its own"))
        found[made] = model
    if problems:
        raise BuildError.of(problems)
    return found


def check_options(asked: BuildOptions, found: list[Problem]) -> None:
    """Checks the options of an image.

    Errors  BuildError with `found`, and what several models cannot have
    """
    if asked.emit != "c":
        hint = "one model at a time, or --emit c"
        found.append(Problem("--emit", "several models at once are built as C", hint))
    if asked.api:
        hint = f"build each by itself: --api {asked.api.partition(':')[0]}:MODULE"
        found.append(Problem("--api", "is for one model", hint))
    if isinstance(asked.target, Mapping):
        what = "several models at once are built for the CPU alone"
        found.append(Problem("--device", what, "one model at a time"))
    if found:
        raise BuildError.of(found)


def check_groups(groups: Sequence[Sequence[str]], names: Collection[str]) -> None:
    """Checks the exclusive groups.

    Errors  BuildError for an unknown model, or one in two groups
    """
    option, seen = "--exclusive", set[str]()
    found: list[Problem] = []
    for group in groups:
        if len(group) < 2:
            what = f"'{', '.join(group)}' is alone in its group"
            found.append(Problem(option, what, "two models or more, as in a,b"))
        for name in group:
            if name not in names:
                hint = fitting(name, names)
                found.append(Problem(option, f"there is no model '{name}'", hint))
            if name in seen:
                found.append(Problem(option, f"'{name}' is named twice"))
            seen.add(name)
    if found:
        raise BuildError.of(found)


def own_options(model: Model, asked: BuildOptions) -> BuildOptions:
    """The options of all models, as one of them takes them."""
    graph, params = model.graph, asked.params
    ends = (*graph.inputs, *graph.outputs)
    if isinstance(params, tuple):
        params = tuple(n for n in params if n in graph.constants)
    return replace(
        asked,
        alone=False,
        ram_limit=None,
        lazy=asked.lazy and tuple(n for n in asked.lazy if n in ends),
        push=tuple(n for n in asked.push if n in graph.inputs),
        layout={n: want for n, want in asked.layout.items() if n in ends},
        params=params,
    )


def check_names(models: Collection[Model], asked: BuildOptions) -> None:
    """Checks that options name tensors that some model has.

    Errors  BuildError for a name of a tensor that no model has
    """
    found: list[Problem] = []
    graphs = [model.graph for model in models]
    ends = [name for g in graphs for name in (*g.inputs, *g.outputs)]
    known = {
        "push": [name for g in graphs for name in g.inputs],
        "lazy": ends,
        "layout": ends,
        "params": [name for g in graphs for name in g.constants],
    }
    for option, there in known.items():
        given = getattr(asked, option) or ()
        for name in () if isinstance(given, str) else given:
            if name not in there:
                hint = fitting(name, dict.fromkeys(there))
                found.append(Problem(f"--{option}", f"no model has a '{name}'", hint))
    if found:
        raise BuildError.of(found)
