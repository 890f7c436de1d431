"""Inlines parts of a program under `torch.no_grad` or `torch.autocast`, which
torch.export keeps as graphs inside nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.errors import BuildError

_WRAPS = (
    "torch.ops.higher_order.wrap_with_autocast",
    "torch.ops.higher_order.wrap_with_set_grad_enabled",
)
_VALUES = ("tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values")


def opened(source: str, graph: Mapping[str, Any]) -> dict[str, Any]:
    """Return the graph with such nodes replaced by the nodes inside them, under unique
    names.

    Errors  BuildError if autocast chooses types when the program runs
    """
    made = {**graph, "nodes": []}
    made |= {kind: dict(graph.get(kind, {})) for kind in _VALUES}
    for node in graph["nodes"]:
        if node["target"] not in _WRAPS:
            made["nodes"].append(node)
            continue
        given = [one["arg"] for one in node["inputs"]]
        at = next(i for i, arg in enumerate(given) if "as_graph" in arg)
        if node["target"] == _WRAPS[0] and given[2].get("as_bool"):
            where = f"{source}: node '{node.get('name', '')}' (autocast)"
            what = "its types are chosen when it runs"
            raise BuildError(where, what, "export without torch.autocast")
        _open(made, source, node, given[at]["as_graph"], given[at + 1 :])
    return made


def _open(
    made: dict[str, Any],
    source: str,
    node: Mapping[str, Any],
    part: Mapping[str, Any],
    given: list[Any],
) -> None:
    """given  what the inputs of the part are outside of it"""
    inside, first = opened(source, part["graph"]), f"{node['name']}/"
    names = {}
    pairs = [(inside["inputs"], given), (inside["outputs"], node["outputs"])]
    for own, theirs in pairs:
        for a, b in zip(_names(own), _names(theirs), strict=True):
            names[a] = b
    ins, outs = set(_names(inside["inputs"])), _names(inside["outputs"])
    same = [one for one in outs if one in ins or outs.count(one) > 1]
    if same:  # two names of one tensor
        where = f"{source}: node '{node['name']}'"
        raise BuildError(where, f"returns '{same[0]}' as it is, or twice")
    for kind in _VALUES:
        for name, value in inside[kind].items():
            made[kind].setdefault(names.setdefault(name, first + name), value)
    for one in inside["nodes"]:
        moved = {key: _renamed(one[key], names) for key in ("inputs", "outputs")}
        name = f"{first}{one.get('name') or ''}"
        made["nodes"].append({**one, **moved, "name": name})


def _names(args: list[Any]) -> list[str]:
    """Return the names of tensors and sizes, in order."""
    found = []
    for arg in args:
        kind, value = next(iter(arg.items()))
        if kind == "as_tensors":
            found += [one["name"] for one in value]
        elif kind == "as_tensor":
            found.append(value["name"])
        elif kind.startswith("as_sym"):
            found.append(value.get("as_name", ""))
        else:
            found.append("")
    return found


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    if "arg" in value:  # an argument: its own name is the operator's
        return {**value, "arg": _renamed(value["arg"], names)}
    found = {key: _renamed(one, names) for key, one in value.items()}
    for key in ("name", "as_name"):
        if isinstance(value.get(key), str):
            found[key] = names.get(value[key], value[key])
    return found
