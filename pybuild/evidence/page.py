"""The page on top of an evidence folder: every number of it is in a file beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
FILES = {
    "tool.json": "what made it: versions and SHA-256 of pybuild, crt and Python",
    "sbom.cdx.json": "bill of materials, CycloneDX 1.6: tool, packages, model, files",
    "report.json": "the build: options, plan, memory, kernels, as in its folder",
    "bounds.json": "what holds for any input: indices, sums, stack, instructions",
    "comparison.json": "the build's outputs beside a reference's, with counts",
    "requirements.json": "each promise of the headers, and the tests that name it",
    "quality.json": "the project's figures: MISRA, coverage, models of readers, flips",
    "limits.json": "what is not known",
    "tree.sha256": "each file that the build writes, in the form of sha256sum",
    "evidence.sha256": "each file of this folder but itself: the one to sign",
}


def page(
    name: str,
    tool: Facts,
    report: Facts,
    layers: Sequence[Facts],
    machine: Facts,
    comparison: Facts,
    required: Sequence[Facts],
    known_limits: Sequence[str],
) -> str:
    """evidence.md."""
    lines = [f"# Evidence of {_text(name)}", ""]
    lines += [
        f"Made by pybuild {tool['version']} (sha256 `{tool['sha256']}`),",
        f"of {_model(report)}.",
        f"`{report['command']}`" if report["command"] else "Built from Python.",
        "",
        "| file | what it says |",
        "|---|---|",
        *(f"| `{file}` | {what} |" for file, what in FILES.items()),
        "",
        "## In figures",
        "",
        "| what | figure |",
        "|---|---:|",
        *(f"| {what} | {figure} |" for what, figure in _figures(
            report, layers, machine, comparison, required)),
        "",
        "## Known limits",
        "",
        *(f"- {_text(one)}" for one in known_limits),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _model(report: Facts) -> str:
    made = report["provenance"].get("model") or {}
    return f"`{made.get('file', 'a graph')}` (sha256 `{made.get('sha256', '-')}`)"


def _figures(
    report: Facts,
    layers: Sequence[Facts],
    machine: Facts,
    comparison: Facts,
    required: Sequence[Facts],
) -> Iterator[tuple[str, str]]:
    ram, flash = report["ram"], report["flash"]
    yield "RAM, bytes", f"{ram['arena'] + ram['instance']:,}"
    yield (
        "flash of weights and tables, bytes",
        f"{flash['weights'] + flash['tables']:,}",
    )
    yield "loads and stores looked at", f"{sum(row['accesses'] for row in layers):,}"
    proven = sum(row["proven"] for row in layers)
    yield "layers whose every access is proven inside", f"{proven} of {len(layers)}"
    rooms = [row["sum_room"] for row in layers if row["sum_room"] is not None]
    yield "least room of an int32 sum", f"{min(rooms)} times" if rooms else "-"
    if "reason" not in machine:
        where = f"{machine['board']}, {machine['simulator']}"
        yield (
            f"instructions of one inference, counted ({where})",
            (f"{machine['instructions']:,}"),
        )
        most = (machine["worst"] or {}).get("instructions")
        yield "instructions of any inference, at most", f"{most:,}" if most else "-"
        yield "stack of one inference, at most, bytes", f"{machine['stack_bound']:,}"
        chain = (f"{row['name']} {row['bytes']}" for row in machine["stack_chain"])
        yield "its chain of calls, bytes of each", _text(", ".join(chain))
    yield "tolerance", _text(comparison["tolerance"])
    against = f"values compared with {_text(comparison['reference'])}"
    for backend, tally in comparison["backends"].items():
        yield f"{against}, {backend}", f"{tally['elements']:,}"
        yield (
            f"further off than {comparison['tolerance']}, {backend}",
            (f"{tally['mismatches']:,}"),
        )
    promised = [one for one in required if one["kind"] == "promise"]
    named = sum(bool(one["tests"]) for one in promised)
    yield "promises of headers that a test names", f"{named} of {len(promised)}"


def _text(words: str) -> str:
    """A model's name with all characters escaped that have a meaning in a page."""
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in plain)
