"""Parses JSON text into plain values and checks their types; reports every problem.
Knows the keys of graph JSON, not how its parts refer to each other.
"""

from __future__ import annotations

import json
from typing import Any

from pybuild.errors import BuildError, Problem

REQUIRED = ("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs")
NODE_KEYS = ("op", "name", "inputs", "attr", "attrs", "control_deps")
# attrs of the whole graph: key -> type tag
LISTS = {
    "dltype": "list_str",
    "storage_id": "list_int",
    "shape": "list_shape",
    "device_index": "list_int",
    "storage_scope": "list_str",
    "lazy_init_input": "list_str",
}
REQUIRED_LISTS = ("dltype", "shape")
_SKIPPED_TAGS = ("list_int", "size_t")
_LIMIT = 2**31


def parse(source: str, data: bytes) -> dict[str, Any]:
    """The object of a JSON file.

    Errors  BuildError for what is not JSON, or gives a key twice
    """
    try:
        top = json.loads(data, object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError:
        raise BuildError(source, "is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BuildError(source, f"is not valid JSON: {error}") from None
    if not isinstance(top, dict):
        raise BuildError(source, "is not a graph: its JSON is not an object")
    return top


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key '{twice}' is given twice")
    return made


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def form_problems(source: str, top: dict[str, Any]) -> list[Problem]:
    """Return the problems of all values with wrong types."""
    found = [Problem(source, f"has no '{k}'") for k in REQUIRED if k not in top]
    for key in top:
        if key not in (*REQUIRED, "metadata"):
            known = ", ".join(REQUIRED)
            found.append(Problem(source, f"the key '{key}' is not known", known))
    nodes = top.get("nodes", [])
    if not isinstance(nodes, list):
        found.append(Problem(source, "'nodes' is not a list"))
    else:
        for number, node in enumerate(nodes):
            found += _node_problems(source, number, node)
    for key in ("arg_nodes", "node_row_ptr"):
        if not _are_ints(top.get(key, [])):
            found.append(Problem(source, f"'{key}' is not a list of integers"))
    if not _are_references(top.get("heads", [])):
        found.append(Problem(source, "'heads' is not a list of [node, output]"))
    return found + _attrs_problems(source, top.get("attrs", {}))


def _node_problems(source: str, number: int, node: Any) -> list[Problem]:
    if not isinstance(node, dict):
        return [Problem(f"{source}: node {number}", "is not an object")]
    name = node.get("name")
    where = f"{source}: node '{name}'" if _is_text(name) else f"{source}: node {number}"
    found = [f"the key '{key}' is not known" for key in node if key not in NODE_KEYS]
    if node.get("op") not in ("null", "tvm_op"):
        found.append(f'\'op\' is {node.get("op")!r}, not "null" or "tvm_op"')
    if not _is_text(name):
        found.append("'name' is not a text")
    if not _are_references(node.get("inputs")):
        found.append("'inputs' is not a list of [node, output]")
    attrs = node.get("attrs", node.get("attr", {}))
    if not isinstance(attrs, dict) or not all(map(_is_text, attrs.values())):
        found.append("'attrs' is not an object of texts")
    if "attr" in node and "attrs" in node:
        found.append("has both 'attr' and 'attrs'")
    return [Problem(where, what) for what in found]


def _attrs_problems(source: str, attrs: Any) -> list[Problem]:
    if not isinstance(attrs, dict):
        return [Problem(source, "'attrs' is not an object")]
    found = [
        Problem(source, f"has no 'attrs.{key}'")
        for key in REQUIRED_LISTS
        if key not in attrs
    ]
    for key, value in attrs.items():
        where = f"'attrs.{key}'"
        if not (isinstance(value, list) and len(value) == 2 and _is_text(value[0])):
            found.append(Problem(source, f"{where} is not a pair of a type and values"))
        elif key not in LISTS and value[0] not in _SKIPPED_TAGS:
            found.append(Problem(source, f"{where} is not known"))
        elif key in LISTS and value[0] != LISTS[key]:
            what = f"{where} is of type {value[0]}, not {LISTS[key]}"
            found.append(Problem(source, what))
        elif key in LISTS and not _FITS[value[0]](value[1]):
            found.append(Problem(source, f"{where} is not a {value[0]}"))
    return found


def _is_text(value: Any) -> bool:
    """Return True for a string that can be written again: it has no lone surrogates."""
    return isinstance(value, str) and not any(0xD800 <= ord(c) < 0xE000 for c in value)


def _is_int(value: Any) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LIMIT
    )


def _are_ints(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_int, value))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_shapes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_are_ints, value))


def _are_references(value: Any) -> bool:
    """[node, output] or, of older writers, [node, output, version]."""
    if not isinstance(value, list):
        return False
    return all(_are_ints(pair) and len(pair) in (2, 3) for pair in value)


_FITS = {"list_str": _are_texts, "list_int": _are_ints, "list_shape": _are_shapes}
