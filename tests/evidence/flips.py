"""Bits of memory that flip while digits runs, whose rows are pushed: what comes of it.

python -m tests.evidence.flips: the counts of docs/security.md, of each bit of an
instance, too (half a minute of the processor).
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pybuild
from tests.toolchains import ROOT, require, run

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
GUARDS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def flips(folder: Path, runs: int, *flags: str) -> dict[str, list[int]]:
    """Where bits flip -> how often the result was the same, another, refused, or the
    guard ended it.

    Errors  AssertionError with the guard's words, where the arena's bits lead out
    """
    model = pybuild.load(DIGITS)
    model.build(folder, name="net", push=list(model.graph.inputs))
    sources = [folder / "net.c", folder / "net_weights.c"]
    sources += sorted((folder / "crt" / "src").glob("*.c"))
    where = [f"-I{folder}", f"-I{folder}/crt/include", "-o", folder / "flips"]
    own = ROOT / "tests" / "evidence" / "flips.c"
    standard = ("-std=gnu99", "-O1", f"-DRUNS={runs}", *GUARDS, *flags)
    run([require("gcc"), *standard, own, *sources, *where])
    said = run([folder / "flips"])
    return {
        line.split()[0]: [int(n) for n in re.findall(r"\d+", line)]
        for line in said.splitlines()
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for name, counts in flips(Path(place), 3000, "-DEACH_BIT").items():
            print(name, *counts)
