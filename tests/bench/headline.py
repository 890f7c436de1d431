"""The comparison on README's first screen, made of docs/benchmarks.md:
`python -m tests.bench.headline` writes it anew; `./dev bench` does so with the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench.board_costs import THEIR_CODE, THEIR_FILE, THEIR_RAM, THEIRS
from tests.conftest import ROOT

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "benchmarks.md"
# what the README says of one core and tool chain
CORE, BACK_END = "cortex-m4", "C, gcc"
TITLES = {
    "kws": "keyword spotting (kws)",
    "vww": "person detection (vww)",
    "ic": "image classification (ic)",
    "ad": "anomaly detection (ad)",
}
HEAD = """\
| | RAM | TFLM | flash | TFLM | instructions | TFLM |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def headline(page: str) -> str:
    """Ours as the table "On boards" of the page has it, beside TFLM's."""
    section = page.split("## On boards", 1)[1].split("\n## ", 1)[0]
    return HEAD + "\n".join(_line(section, network) for network in TITLES)


def _line(section: str, network: str) -> str:
    found = re.search(rf"^\| {network} \| {CORE} \| {BACK_END} \|.*$", section, re.M)
    assert found is not None, network
    cells = [cell.strip() for cell in found[0].strip("| ").split("|")]
    instructions, _, ram, _, _, flash = cells[3:9]
    theirs = (
        f"{THEIR_RAM[network]:,}",
        f"{THEIR_CODE[network] + THEIR_FILE[network]:,}",
        f"{THEIRS[network][CORE]:,}",
    )
    ours = zip((ram, flash, instructions), theirs, strict=True)
    return f"| {TITLES[network]} | {' | '.join(f'{a} | {b}' for a, b in ours)} |"


def table_of(readme: str) -> str:
    """The lines of the README that `headline` says."""
    start = readme.index(HEAD)
    return readme[start : readme.index("\n\n", start)]


def write(readme: Path = README, page: Path = PAGE) -> None:
    text = readme.read_text()
    readme.write_text(text.replace(table_of(text), headline(page.read_text())))


if __name__ == "__main__":
    write()
