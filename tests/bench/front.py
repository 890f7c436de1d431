"""The first screen of docs/benchmarks.md, made of the long tables behind it, and the
table of README, made of that: `python -m tests.bench.front` writes both anew.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.bench.board_costs import THEIR_CODE, THEIR_FILE, THEIR_RAM
from tests.bench.costs import Row, Table
from tests.bench.pages import DOCS, PAGES, sections
from tests.conftest import ROOT
from tests.figures.tools import commit, processor, versions

README = ROOT / "README.md"
PAGE = DOCS / "benchmarks.md"
BACK_END = "C, gcc"
CORES = ("cortex-m4", "cortex-m55")
TITLES = {
    "kws": "keyword spotting (kws)",
    "vww": "person detection (vww)",
    "ic": "image classification (ic)",
    "ad": "anomaly detection (ad)",
}
OPENING = """\
# Benchmarks

What a network costs on a microcontroller, counted, not estimated: instructions on
simulated boards, bytes of RAM and flash. All is of the default build, `crt build M -o
DIR`, C compiled by gcc. A ratio below 1 is less than theirs. `./dev bench` writes these
pages, all of one commit; do not edit.
"""
HEAD = """\
| | RAM | TFLM | flash | TFLM | instructions | TFLM |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
Rows = list[list[str]]


def front(pages: Sequence[str], measured_with: Table) -> str:
    """The page, from the text of those behind it."""
    known: dict[str, Rows] = {}
    for page in pages:
        known |= sections(page)
    tables = (
        _four(known["On boards"]),
        _field(known["Nets of the field"], known["Nets of the field: RAM"]),
        _beside(known["Beside CMSIS-NN, every layer"]),
    )
    behind = "".join(
        f"- [{one.title}]({one.path.name}): {one.says[0].lower()}{one.says[1:]}\n"
        for one in PAGES
    )
    parts = [OPENING, *(table.markdown() for table in tables)]
    parts += [f"## All tables\n\n{behind}", measured_with.markdown()]
    return "\n".join(parts).rstrip() + "\n"


def _four(on_boards: Rows) -> Table:
    rows: list[Row] = []
    for network, title in TITLES.items():
        for core in CORES:
            found = next(r for r in on_boards if r[:3] == [network, core, BACK_END])
            instructions, _, ram, _, _, flash, theirs, ratio = found[3:11]
            known = core == CORES[0]
            flash_there = THEIR_CODE[network] + THEIR_FILE[network]
            rows.append((
                title, core, instructions, theirs, ratio,
                ram, f"{THEIR_RAM[network]:,}" if known else "",
                flash, f"{flash_there:,}" if known else "",
            ))  # fmt: skip
    says = (
        "The int8 networks of MLPerf Tiny, one inference, beside TensorFlow Lite Micro "
        "with CMSIS-NN (TFLM). Our RAM is arena, instance and stack; theirs is the "
        "tensor arena alone. Flash is code, tables and weights; theirs is code and the "
        "model file."
    )
    columns = (
        "network", "core", "instructions", "TFLM", "ratio", "RAM", "TFLM ", "flash",
        "TFLM  ",
    )  # fmt: skip
    return Table("Four networks", says, columns, tuple(rows))


def _field(counted: Rows, ram: Rows) -> Table:
    bytes_on_m4 = {row[0]: row[3] for row in ram}
    unequal = {r[0]: 0 for r in counted}
    for row in counted:
        unequal[row[0]] += int(row[8].replace(",", ""))
    rows: list[Row] = []
    for name in unequal:
        first, second = (
            next(r for r in counted if r[0] == name and r[2:4] == [core, BACK_END])
            for core in CORES
        )
        counts = (first[4], first[5], second[4], second[5])
        equal = "yes" if not unequal[name] else f"{unequal[name]} are not"
        rows.append((name, first[1], *counts, bytes_on_m4[name], equal))
    says = (
        "Architectures that people take, with seeded weights, as int8 .tflite: "
        "multiplications (MACs) of an inference, instructions of it and of each MAC, "
        "arena and instance in bytes, and whether each output is LiteRT's."
    )
    columns = (
        "net", "MACs", "on a Cortex-M4", "per MAC", "on a Cortex-M55", "per MAC ",
        "RAM on a Cortex-M4", "equal",
    )  # fmt: skip
    return Table("Networks of the field", says, columns, tuple(rows))


def _beside(layers: Rows) -> Table:
    """layers: operator, layer, and for each core theirs, ours, ratio"""
    rows: list[Row] = []
    for operator in dict.fromkeys(row[0] for row in layers):
        some = [row for row in layers if row[0] == operator]
        figures: list[str] = []
        for at in (4, 7):
            ratios = sorted(float(row[at]) for row in some if row[at])
            least_most = f"{ratios[0]:.2f} to {ratios[-1]:.2f}" if ratios else ""
            middle = f"{statistics.median(ratios):.2f}" if ratios else ""
            figures += [middle, least_most]
        rows.append((operator, len(some), *figures))
    says = (
        "Our instructions to theirs, for layers of the same shapes: the median and "
        "the range. [Every layer](benchmarks-layers.md#beside-cmsis-nn-every-layer) "
        "has both counts."
    )
    columns = (
        "operator", "layers", "on a Cortex-M4", "least to most", "on a Cortex-M55",
        "least to most ",
    )  # fmt: skip
    return Table("Beside CMSIS-NN, by operator", says, columns, tuple(rows))


def measured_with(of: str) -> Table:
    """of: the commit"""
    rows = [("commit", of), ("board", "host")]
    rows += [*processor().items(), *versions().items()]
    return Table("Measured with", "One machine.", ("", "version"), tuple(rows))


# ---- README -------------------------------------------------------------------


def headline(page: str) -> str:
    """The table of README, as "Four networks" of the page has it."""
    rows = [r for r in sections(page)["Four networks"] if r[1] == CORES[0]]
    return HEAD + "\n".join(
        f"| {title} | {' | '.join((*memory, instructions, theirs))} |"
        for title, _, instructions, theirs, _, *memory in rows
    )


def table_of(readme: str) -> str:
    """The lines of README that `headline` says."""
    start = readme.index(HEAD)
    return readme[start : readme.index("\n\n", start)]


def write(of: str) -> None:
    """of: the commit"""
    pages = [one.path.read_text() for one in PAGES]
    PAGE.write_text(front(pages, measured_with(of)))
    text = README.read_text()
    README.write_text(text.replace(table_of(text), headline(PAGE.read_text())))


if __name__ == "__main__":
    write(commit())
