"""The project's own figures as data, read off the pages that tests hold: what
`crt build --evidence` files of crt. `python -m tests.evidence.page` writes it anew."""

from __future__ import annotations

import json
import re

from tests.toolchains import ROOT

FILE = ROOT / "pybuild" / "evidence" / "quality.json"
# name -> page, begin of the table's first line
TABLES = {
    "misra": ("misra.md", "| rule | | dealt with |"),
    "misra_disapplied": ("misra.md", "| advisory rule |"),
    "misra_deviations": ("misra.md", "| rule | in | why |"),
    "object_branches": ("misra.md", "| branches of the object code of |"),
    "object_branches_one_way": ("misra.md", "| one way only, in |"),
    "tests": ("testing.md", "| what is compared or broken |"),
    "model_checked": ("bounds.md", "| harness |"),
    "flipped_bits": ("security.md", "| bits flip in |"),
    "resets": ("security.md", "| what a reset interrupts |"),
}
_MCDC = re.compile(
    r"Each of the (\d+) conditions[^.]*\(MC/DC\s+100\s+%,\s+by\s+clang\s+(\d+)\)"
)


def quality() -> dict[str, object]:
    """Tables with a row a dict."""
    said = (ROOT / "docs" / "testing.md").read_text()
    found = _MCDC.search(said)
    assert found, "docs/testing.md says MC/DC no more"
    made: dict[str, object] = {name: table(*place) for name, place in TABLES.items()}
    made["mcdc"] = {"conditions": int(found[1]), "shown": int(found[1])}
    return made


def table(page: str, begin: str) -> list[dict[str, str]]:
    text = (ROOT / "docs" / page).read_text()
    assert text.count(f"\n{begin}") == 1, (page, begin)
    lines = text[text.index(f"\n{begin}") + 1 :].split("\n\n")[0].splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    head, _, *body = rows
    return [dict(zip(head, row, strict=True)) for row in body]


def as_json() -> str:
    return json.dumps(quality(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_json())
