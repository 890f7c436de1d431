"""Checks of a report.json's recipe before it is used, because a stranger may have
written it. Keys have types, files are names, and every option is one of the table, with
a valid value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.errors import BuildError, Problem, fitting
from pybuild.files.shape import Schema, problems_of, shown
from pybuild.options.many import ImageOptions
from pybuild.options.option import options_in
from pybuild.options.packages import PackageOptions
from pybuild.options.table import (
    BuildOptions,
    LoadOptions,
    QuantiseOptions,
)

HINT = "crt build makes one that says how it was made"
_DIGEST = {
    "type": "string", "pattern": r"\A[0-9a-f]{64}\Z", "description": "a SHA-256",
}  # fmt: skip
_FILE: Schema = {
    "type": "object",
    "properties": {"file": {"type": "string", "format": "name"}, "sha256": _DIGEST},
    "required": ["file", "sha256"],
}
_OR_NONE: Schema = {"anyOf": [{"type": "null"}, _FILE]}
_TABLE: Schema = {"type": "object"}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
# of a model: its file, and what it was read and quantised with
OF_MODEL: Schema = {
    "type": "object",
    "properties": {
        "pybuild": {"type": "string"}, "build": _TABLE, "model": _OR_NONE,
        "load": {
            "type": "object",
            "properties": {"state": _TEXTS},
            "required": ["state"],
        },
        "quantise": _TABLE, "data": _OR_NONE, "test": _OR_NONE,
    },
    "required": ["pybuild", "build", "model", "load"],
}  # fmt: skip
_EXAMPLE: Schema = {"type": "object", "properties": {"sha256": _DIGEST}}
_ONE: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "format": "name"}, "provenance": OF_MODEL,
        "example": _EXAMPLE, "package": _TABLE,
    },
    "required": ["name", "provenance"],
}  # fmt: skip
_SEVERAL: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "format": "name"},
        "models": {"type": "array", "items": _ONE},
        "provenance": {
            "type": "object",
            "properties": {"pybuild": {"type": "string"}, "build": _TABLE},
            "required": ["pybuild", "build", "exclusive", "connect"],
        },
        "example": _EXAMPLE, "package": _TABLE,
    },
    "required": ["name", "models", "provenance"],
}  # fmt: skip
_ALONE = "alone"  # of a build in an image, which is not an option


def checked_recipe(where: str, facts: Any) -> dict[str, Any]:
    """The facts, with the keys of today.

    Errors  BuildError with everything that is wrong
    """
    if not isinstance(facts, dict):
        raise BuildError(where, f"is {shown(facts)}, not a table", HINT)
    models = facts.get("models")
    parts = models if isinstance(models, list) else []
    for each in (facts, *(one for one in parts if isinstance(one, dict))):
        if "provenance" not in each and "made" in each:  # by pybuild before 0.3
            each["provenance"] = each["made"]
    whole = _SEVERAL if "models" in facts else _ONE
    found = problems_of(where, facts, whole, HINT)
    if not found:
        found = _of_options(where, facts)
    if found:
        raise BuildError.of(found)
    return facts


def _of_options(where: str, facts: Mapping[str, Any]) -> list[Problem]:
    made, own = facts["provenance"], f"{where}: provenance"
    found = wrong_options(BuildOptions, made["build"], f"{own}.build", (_ALONE,))
    if "package" in facts:
        found += wrong_options(PackageOptions, facts["package"], f"{where}: package")
    if "models" not in facts:
        return found + _of_model(made, own)
    wires = {name: made[name] for name in ("exclusive", "connect")}
    found += wrong_options(ImageOptions, wires, own)
    for index, each in enumerate(facts["models"]):
        at = f"{where}: models[{index}].provenance"
        found += _of_model(each["provenance"], at)
    return found


def _of_model(made: Mapping[str, Any], own: str) -> list[Problem]:
    found = wrong_options(LoadOptions, made["load"], f"{own}.load")
    if made["load"].get("front") is not None:
        what = "names a file: of such a model no tree says how it was made"
        found.append(Problem(f"{own}.load.front", what))
    if "quantise" not in made:
        return found
    found += wrong_options(QuantiseOptions, made["quantise"], f"{own}.quantise")
    for key in ("data", "test"):
        if key not in made:
            found.append(Problem(own, f"has no '{key}'", HINT))
    return found


def wrong_options(
    kind: type[Any], given: Mapping[str, Any], where: str, also: tuple[str, ...] = ()
) -> list[Problem]:
    """Everything that is wrong with options of a class, by the keys of a report."""
    known = {one.keyword: one for one in options_in(kind)}
    found: list[Problem] = []
    for name, value in given.items():
        if name in also:
            continue
        if name not in known:
            what = f"has {shown(name)}, which is not an option"
            found.append(Problem(where, what, fitting(name, known)))
            continue
        try:
            known[name].read(value)
        except BuildError as error:
            at = f"{where}.{name}"
            found += [Problem(at, one.what, one.hint) for one in error.problems]
    return found
