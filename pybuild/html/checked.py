"""A report.json that is drawn or compared, which a stranger may have written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError, Problem
from pybuild.files.shape import problems_of, shown
from pybuild.html.schema import of_image, schema
from pybuild.package.recipe_shape import OF_MODEL
from pybuild.package.report import SCHEMA


def checked(path: Path, facts: Any) -> dict[str, Any]:
    """The checked report of one model.

    Errors  BuildError for one of several models, or of another pybuild, and with every
            key that is not what docs/report-schema.json has
    """
    if not isinstance(facts, Mapping):
        raise BuildError(str(path), "is not a report")
    if "models" in facts:
        what = "has several models"
        raise BuildError(str(path), what, "crt report MODEL for each of them")
    _must_fit(path, facts)
    return dict(facts)


def checked_image(path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The checked report of several models.

    Errors  BuildError
    """
    own = of_image()
    image = {**own["properties"]["image"], "$defs": own["$defs"]}
    properties = {**image["properties"], "models": {"type": "array"}}
    parts = {n: v for n, v in facts.items() if n != "package"}
    found = problems_of(str(path), parts, {**image, "properties": properties})
    if found:
        raise BuildError.of(found)
    for one in facts["models"]:
        if not isinstance(one, dict):
            raise BuildError(str(path), f"models has {shown(one)}, not a table")
        _must_fit(path, one)
    return dict(facts)


def _must_fit(path: Path, facts: Mapping[str, Any]) -> None:
    if facts.get("schema") != SCHEMA:
        what = f"has schema {shown(facts.get('schema', 1))}, and this is {SCHEMA}"
        raise BuildError(str(path), what, f"crt rebuild {path.parent}")
    parts = {n: v for n, v in facts.items() if n != "package"}
    whole = {"$ref": "#/$defs/Report", "$defs": schema()["$defs"]}
    hint = f"crt rebuild {path.parent}"
    found = problems_of(str(path), parts, whole, hint)
    if not found:
        own = problems_of(f"{path}: provenance", facts["provenance"], OF_MODEL, hint)
        found = [*own, *_loose_ends(str(path), facts, hint)]
    if found:
        raise BuildError.of(found)


def _loose_ends(where: str, facts: Mapping[str, Any], hint: str) -> list[Problem]:
    """Numbers of rows that are not there."""
    nodes, layers = facts["graph"]["nodes"], facts["layers"]
    found = []
    if len(nodes) != len(layers):
        what = f"graph.nodes has {len(nodes)} rows, layers {len(layers)}"
        found.append(Problem(where, what, hint))
    for index, node in enumerate(nodes):
        kernel = node["kernel"]
        if kernel is not None and not 0 <= kernel < len(facts["kernels"]):
            what = f"graph.nodes[{index}].kernel is {kernel}, no row of kernels"
            found.append(Problem(where, what, hint))
    return found
