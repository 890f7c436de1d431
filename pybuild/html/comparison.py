"""Two builds side by side, of what their report.json say: figures, layers, kernels and
options that differ. Values only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pybuild.package.grid import NAME, NUMBER, TEXT, Page, grid
from pybuild.package.totals import totals_of
from pybuild.records import dataclass

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A number of each build; what: its name for people."""

    what: str
    one: float
    other: float


@dataclass(frozen=True)
class LayerChange:
    """A layer of one build or of both, by its short name; one, other: kernel (""; none
    of its own), instructions and bytes of weights; None: the build has no such layer.
    """

    layer: str
    op: str
    one: LayerCost | None
    other: LayerCost | None


@dataclass(frozen=True)
class LayerCost:
    """The cost of a layer: estimated instructions of an inference; bytes in flash."""

    kernel: str
    instructions: int
    weights: int


@dataclass(frozen=True)
class Change:
    """A kernel with its bytes of code, or an option with its value, in either build;
    None: it is not there.
    """

    name: str
    one: Any
    other: Any


@dataclass(frozen=True)
class Comparison:
    """names: of the builds; commands: that make them; targets: whose kernels they have.

    figures  all; layers, kernels, options: those that differ
    """

    names: tuple[str, str]
    commands: tuple[str, str]
    figures: tuple[Figure, ...]
    layers: tuple[LayerChange, ...]
    kernels: tuple[Change, ...]
    options: tuple[Change, ...]
    targets: tuple[str, str] = ("", "")


def compared(one: Facts, other: Facts) -> Comparison:
    """The comparison of two report.json of the current schema."""
    pair = one, other
    shared = any(facts["cores"] for facts in pair)
    numbers = [dict(_figures(facts, shared)) for facts in pair]
    code = [{row["name"]: row["bytes"] for row in facts["code"]} for facts in pair]
    options = [dict(_options(facts)) for facts in pair]
    return Comparison(
        (one["name"], other["name"]),
        (one["command"], other["command"]),
        tuple(Figure(what, n, numbers[1][what]) for what, n in numbers[0].items()),
        tuple(_layers(one, other)),
        tuple(_changes(*code)),
        tuple(_changes(*options)),
        (one["target"], other["target"]),
    )


def _figures(facts: Facts, shared: bool) -> Iterator[tuple[str, int]]:
    """shared: either build is for several cores."""
    ram, flash, whole = facts["ram"], facts["flash"], totals_of(facts)
    yield "RAM", whole.ram
    yield "arena", ram["arena"]
    yield "instance", ram["instance"]
    yield "unpacked weights", ram["unpacked"]
    yield "flash, code as estimated", whole.flash
    yield "weights", flash["weights"]
    yield "tables", flash["tables"]
    yield "code, as estimated", whole.code
    yield "instructions, as estimated", whole.instructions
    if shared:
        use = facts["cores"] or {"sliced": 0}
        least = use["together"] if use["sliced"] else whole.instructions
        yield "from begin to end, as estimated", least
    yield "multiply-accumulates", facts["macs"]
    yield "layers", len(facts["layers"])
    yield "kernels", len(facts["code"])
    yield "stages", len(facts["stages"])


def _options(facts: Facts) -> Iterator[tuple[str, Any]]:
    made = facts["provenance"]
    yield "pybuild", made["pybuild"]
    yield "model", (made["model"] or {}).get("sha256")
    for group in ("load", "quantise", "build"):
        yield from made.get(group, {}).items()


def _changes(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys((*one, *other)):
        if one.get(name) != other.get(name):
            yield Change(name, one.get(name), other.get(name))


def _layers(one: Facts, other: Facts) -> Iterator[LayerChange]:
    """Layers are the same where their short names are."""
    sides = [dict(_costs(facts)) for facts in (one, other)]
    for key in dict.fromkeys((*sides[0], *sides[1])):
        pair = sides[0].get(key), sides[1].get(key)
        if pair[0] != pair[1]:
            yield LayerChange(key[0], key[1], *pair)


def _costs(facts: Facts) -> Iterator[tuple[tuple[str, str], LayerCost]]:
    weights: dict[str, int] = {}
    for row in facts["weights"]:
        for layer in row["layers"][:1]:
            weights[layer] = weights.get(layer, 0) + row["bytes"]
    for layer, node in zip(facts["layers"], facts["graph"]["nodes"], strict=True):
        own = None if node["kernel"] is None else facts["kernels"][node["kernel"]]
        kernel = own["kernel"] if own else ""
        spent = own["instructions"] if own else 0
        held = weights.get(layer["short"], 0)
        yield (layer["short"], layer["op"]), LayerCost(kernel, spent, held)


def comparison_page(found: Comparison) -> Page:
    """The comparison as tables for people: all figures, and the differences."""
    one, other = found.names if found.names[0] != found.names[1] else ("A", "B")
    columns = [("", TEXT), (one, NUMBER), (other, NUMBER)]
    columns += [("difference", NUMBER), ("", NUMBER)]
    rows = [_row(row.what, row.one, row.other) for row in found.figures]
    said = f"target {found.targets[0]}"
    if found.targets[0] != found.targets[1]:
        said = f"target {found.targets[0]} of {one}, {found.targets[1]} of {other}"
    parts: list[Any] = [said, grid("", columns, rows)]
    if found.layers:
        columns = [("layer", NAME), ("kernels", TEXT), ("instructions", NUMBER)]
        columns += [("", NUMBER), ("difference", NUMBER), ("weights", NUMBER)]
        parts.append(grid("Layers", columns, [_layer(row) for row in found.layers]))
    for title, changes in (("Code", found.kernels), ("Options", found.options)):
        if changes:
            columns = [("", NAME), (one, NUMBER), (other, NUMBER)]
            parts.append(grid(title, columns, [_said(row) for row in changes]))
    same = not (found.layers or found.kernels or found.options)
    return (*parts, *(["nothing differs"] if same else []))


def _row(what: str, one: float, other: float) -> Sequence[str]:
    change = other - one
    share = f"{100 * change / one:+.1f} %" if one and change else ""
    return what, f"{one:,}", f"{other:,}", f"{change:+,}" if change else "", share


def _layer(row: LayerChange) -> Sequence[str]:
    one, other = row.one, row.other
    before, after = one.kernel if one else "-", other.kernel if other else "-"
    kernels = before if before == after else f"{before} -> {after}"
    spent = one.instructions if one else 0, other.instructions if other else 0
    held = (other.weights if other else 0) - (one.weights if one else 0)
    change = spent[1] - spent[0]
    said = f"{change:+,}" if change else "", f"{held:+,}" if held else ""
    return row.layer, kernels, f"{spent[0]:,}", f"{spent[1]:,}", *said


def _said(row: Change) -> Sequence[str]:
    values = ["-" if v is None else str(v) for v in (row.one, row.other)]
    short = [v if len(v) <= 40 else f"{v[:16]}…" for v in values]
    return row.name, short[0], short[1]
