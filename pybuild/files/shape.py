"""Checks of plain values, key by key, against a JSON Schema; every misfit is reported.

Knows the words of JSON Schema that pybuild's own schemas use (WORDS), and two more
formats: "name", of a file beside, and "path", of one within a folder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pybuild.errors import Problem, close_to
from pybuild.files.names import is_inside, is_plain

Schema = Mapping[str, Any]
WORDS = frozenset((
    "$schema", "$defs", "$ref", "description", "deprecated", "type", "const", "enum",
    "pattern", "format", "minimum", "properties", "required", "additionalProperties",
    "items", "prefixItems", "minItems", "maxItems", "anyOf",
))  # fmt: skip
MOST = 20  # problems of one document
_SHOWN = 40  # characters of a value
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("a table", lambda v: isinstance(v, dict)),
    "array": ("a list", lambda v: isinstance(v, list)),
    "string": ("a text", lambda v: isinstance(v, str)),
    "boolean": ("true or false", lambda v: isinstance(v, bool)),
    "null": ("null", lambda v: v is None),
    "integer": (
        "a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)
    ),
    "number": (
        "a number",
        lambda v: isinstance(v, int | float)
        and not isinstance(v, bool)
        and math.isfinite(v),
    ),
}  # fmt: skip
_FORMATS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("the name of a file", is_plain),
    "path": ("a path within the folder", is_inside),
}


def problems_of(
    where: str, value: Any, schema: Schema, hint: str = ""
) -> list[Problem]:
    """`report.json: ram.arena is "x", not a whole number`; [] if all is as it must be.

    where  the file; hint: of all of them
    """
    found: list[Problem] = []
    for key, what in misfits(value, schema, schema.get("$defs", {})):
        if len(found) == MOST:
            found.append(Problem(where, "has more of such faults", hint))
            break
        found.append(Problem(where, f"{key} {what}" if key else what, hint))
    return found


def misfits(value: Any, schema: Schema, defs: Schema) -> Iterator[tuple[str, str]]:
    """The key that is wrong, as a.b[3], and what is."""
    if "$ref" in schema:
        yield from misfits(value, defs[schema["$ref"].rpartition("/")[2]], defs)
        return
    if "anyOf" in schema:
        yield from _of_none(value, schema["anyOf"], defs)
        return
    wrong = _plainly(value, schema)
    if wrong:
        yield "", f"is {shown(value)}, not {wrong}"
    elif isinstance(value, dict):
        yield from _of_table(value, schema, defs)
    elif isinstance(value, list):
        yield from _of_list(value, schema, defs)


def _plainly(value: Any, schema: Schema) -> str:
    """The schema in words that a value does not match, without its parts; "" if it
    matches."""
    if "type" in schema:
        word, fits = _TYPES[schema["type"]]
        if not fits(value):
            return word
    if "const" in schema and value != schema["const"]:
        return shown(schema["const"])
    if "enum" in schema and value not in schema["enum"]:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "minimum" in schema and value < schema["minimum"]:
        return f"{schema['minimum']} or more"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return str(schema.get("description", f"of the form {schema['pattern']}"))
    if "format" in schema:
        word, fits = _FORMATS[schema["format"]]
        return "" if fits(value) else word
    return ""


def _of_table(
    value: dict[str, Any], schema: Schema, defs: Schema
) -> Iterator[tuple[str, str]]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key in schema.get("required", ()):
        if key not in value:
            yield "", f"has no '{key}'"
    for key, each in value.items():
        if key in known:
            yield from _below(key, misfits(each, known[key], defs))
        elif others is False:
            close = close_to(key, known) if len(key) < _SHOWN else ""
            meant = f", which may be '{close}'" if close else ""
            yield "", f"has a key {shown(key)} that is not known{meant}"
        elif others is not None:
            yield from _below(key, misfits(each, others, defs))


def _of_list(
    value: list[Any], schema: Schema, defs: Schema
) -> Iterator[tuple[str, str]]:
    first, rest = schema.get("prefixItems", ()), schema.get("items")
    if rest is False and len(value) != len(first):
        yield "", f"has {len(value)} values, not {len(first)}"
        return
    for index, each in enumerate(value):
        one = first[index] if index < len(first) else rest
        if one is not None:
            yield from _below(f"[{index}]", misfits(each, one, defs))


def _of_none(
    value: Any, schemas: Iterable[Schema], defs: Schema
) -> Iterator[tuple[str, str]]:
    """The misfits of a value that fits none of several schemas: those of the most
    similar one, or all kinds."""
    near: list[list[tuple[str, str]]] = []
    kinds: list[str] = []
    for schema in schemas:
        one = schema
        while "$ref" in one:
            one = defs[one["$ref"].rpartition("/")[2]]
        wrong = list(misfits(value, one, defs))
        if not wrong:
            return
        plain = _plainly(value, one)
        kinds.append(plain or "as it must be")
        if not plain:
            near.append(wrong)
    if near:
        yield from min(near, key=len)
    else:
        yield "", f"is {shown(value)}, not {' or '.join(dict.fromkeys(kinds))}"


def _below(key: str, found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    own = key if key.startswith("[") else key[:_SHOWN]
    for inner, what in found:
        dot = "." if inner and not inner.startswith("[") else ""
        yield f"{own}{dot}{inner}", what


def shown(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    match value:
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            text = f"'{value}'"
        case _:
            text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
