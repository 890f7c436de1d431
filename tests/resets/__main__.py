"""python -m tests.resets: resets at each write of each scene, or at each seventh, some
minutes of a processor; writes the table of docs/security.md."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.resets.scenes import ANEW, BEFORE, KINDS, NEW, REFUSED, SCENES
from tests.toolchains import ROOT

PAGE = ROOT / "docs" / "security.md"
TABLE = "| what a reset interrupts |"


def row(name: str, writes: int, found: Mapping[str, int]) -> str:
    """The last cell: all that must not be."""
    counts = [found.get(kind, 0) for kind in KINDS]
    total, good = sum(counts), [found.get(k, 0) for k in (NEW, BEFORE, ANEW, REFUSED)]
    cells = [writes, total, *good, total - sum(good)]
    return f"| {name} | {' | '.join(f'{n:,}' for n in cells)} |"


def main() -> None:
    rows = []
    for name, (scene, every) in SCENES.items():
        with tempfile.TemporaryDirectory() as folder:
            made = scene(Path(folder))
            rows.append(row(name, made.writes, made.counted(every)))
        print(rows[-1], flush=True)
    text = PAGE.read_text()
    head = rf"({re.escape(TABLE)}[^\n]*\n[^\n]*\n).*?(?=\n\n)"
    done, count = re.subn(head, lambda m: m[1] + "\n".join(rows), text, flags=re.S)
    assert count == 1
    PAGE.write_text(done)


if __name__ == "__main__":
    main()
