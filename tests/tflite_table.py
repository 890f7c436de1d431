"""The TensorFlow Lite section of docs/operators.md, from a run of random files of every
operator: python -m tests.tflite_table [FILES OF EACH TYPE].
"""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from pybuild.frontends.tflite import OPERATORS
from tests.conftest import ROOT
from tests.tflite_cases import BATCH, ELSEWHERE, Outcome, outcomes
from tests.tflite_draws import DRAWS, all_cases

PAGE = ROOT / "docs" / "operators.md"
TITLE = "# TensorFlow Lite operators"
WORKERS = 4
# of each operator in each type, in the sweep
CASES = 6
_ELSEWHERE = "{}, {}, {}, {} and {}".format(*sorted(ELSEWHERE))
OPENING = f"""{TITLE}

Written by `python -m tests.tflite_table` from the table of the code and a run of
{{count}} random files of one operator; the sweep runs {CASES} for each operator and
type. Do not edit. A file counts as passed when the generated C and the code from LLVM
both give what LiteRT's reference kernels give: integers exactly, float32 to 1e-5 of
the largest value. Of {_ELSEWHERE}, which have no such kernel
or a wrong one, LiteRT's own kernels. Unknown: LiteRT has no kernel of that type. uint8
is int8 inside, with a zero point that is 128 less.

Where TensorFlow Lite Micro computes otherwise, `--rounding tflm` does as it: dense
layers, SUM and L2_NORMALIZATION of int8 round twice; RELU6 of int8 clips the integers
of its input, whatever the scale of its output; CUMSUM of int8, which LiteRT does not
have, begins with the zero point, taken off once more (otherwise with 0). DIV of bytes
gives 0 where the quotient is so small that LiteRT shifts by more than 31 bits, which
C does not define, and for a divisor of 0. TFLite_Detection_PostProcess takes one class
for each box unless `use_regular_nms` is set: with more, LiteRT writes beside its
outputs.

UNIDIRECTIONAL_SEQUENCE_LSTM of int8 has other curves in TensorFlow Lite Micro than in
LiteRT: `--rounding tflm` gives those. Only TensorFlow Lite Micro has it in int16, and
SVDF with a state of int8; these three are compared with values that it gave
(`tests/frontends/tflm.json`).

| operator | passed C | passed LLVM | of | types | unknown to LiteRT |
| --- | ---: | ---: | ---: | --- | --- |
"""


def section(found: Sequence[Outcome]) -> str:
    """The section of the page."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    passing, unknown = types(found), defaultdict(set)
    for one in found:
        code, kind, _ = one.key
        counts[code][one.result] += 1
        if one.result == "unknown":
            unknown[code].add(kind)
    lines = []
    for code in sorted(OPERATORS):
        if code not in DRAWS:
            lines.append(f"| {code} | | | | in tests of its own | |")
            continue
        passed = counts[code]["passed"]
        every = sum(counts[code].values()) - counts[code]["unknown"]
        bare = ", ".join(sorted(unknown[code]))
        kinds = passing.get(code, "")
        lines.append(f"| {code} | {passed} | {passed} | {every} | {kinds} | {bare} |")
    return OPENING.format(count=len(found)) + "\n".join(lines) + "\n"


def with_section(page: str, made: str) -> str:
    """The page with this section instead of the one that it has."""
    kept = re.split(rf"\n*^{TITLE}$", page, maxsplit=1, flags=re.M)[0]
    return kept.rstrip() + "\n\n" + made


def after(page: str) -> str:
    """A page of other operators with the section that is there."""
    text = PAGE.read_text()
    return with_section(page, text[text.index(TITLE) :])


def rows() -> dict[str, tuple[int, int, str]]:
    """operator -> files passed, of, types, as the page says"""
    found = re.findall(
        r"^\| (\w+) \| (\d+) \| \d+ \| (\d+) \| ([^|]*) \|", PAGE.read_text(), re.M
    )
    return {code: (int(a), int(b), kinds) for code, a, b, kinds in found}


def types(found: Iterable[Outcome]) -> dict[str, str]:
    """operator -> types of files that passed"""
    made: dict[str, list[str]] = defaultdict(list)
    for one in found:
        code, kind, _ = one.key
        if one.result == "passed" and kind not in made[code]:
            made[code].append(kind)
    return {code: ", ".join(sorted(kinds)) for code, kinds in made.items()}


def run(count: int = CASES) -> list[Outcome]:
    keys = all_cases(count)
    fork = multiprocessing.get_context("fork")
    parts = [keys[i : i + BATCH] for i in range(0, len(keys), BATCH)]
    with ProcessPoolExecutor(WORKERS, mp_context=fork) as pool:
        return [one for part in pool.map(_part, parts) for one in part]


def _part(keys: Sequence[tuple[str, str, int]]) -> list[Outcome]:
    return list(outcomes(keys))


def main(arguments: Sequence[str]) -> int:
    found = run(int(arguments[0]) if arguments else CASES)
    PAGE.write_text(with_section(PAGE.read_text(), section(found)))
    bad = [one for one in found if one.result in ("wrong", "refused")]
    for one in bad:
        print(one.key, one.result, one.why)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
