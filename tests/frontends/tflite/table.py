"""The TensorFlow Lite section of docs/operators.md, from a run of random files of every
operator: python -m tests.frontends.tflite.table [FILES OF EACH TYPE].
"""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from pybuild.frontends.tflite import OPERATORS
from pybuild.frontends.tflite.operators.signal import SIGNAL
from tests import kernel_table
from tests.conftest import ROOT
from tests.frontends.tflite import tflm
from tests.frontends.tflite.cases import BATCH, ELSEWHERE, Outcome, outcomes
from tests.frontends.tflite.draws import DRAWS, all_cases

PAGE = ROOT / "docs" / "operators.md"
TITLE = "# TensorFlow Lite operators"
WORKERS = 4
# of each operator in each type, in the sweep
CASES = 6
_ELSEWHERE = "{}, {}, {}, {} and {}".format(*sorted(ELSEWHERE))
OPENING = f"""{TITLE}

Written by `python -m tests.frontends.tflite.table` from the table of the code and a
run of {{count}} random files of one operator; the sweep runs {CASES} for each operator
and type. Do not edit. A file counts as passed when the generated C and the code from
LLVM both give what LiteRT's reference kernels give: integers exactly, float32 to 1e-5
of the largest value. Of {_ELSEWHERE}, which have no such kernel
or a wrong one, LiteRT's own kernels. Unknown: LiteRT has no kernel of that type. uint8
is int8 inside, with a zero point that is 128 less.

DIV of bytes gives 0 where the quotient is so small that LiteRT shifts by more than 31
bits, which C does not define, and for a divisor of 0. TFLite_Detection_PostProcess
takes one class for each box unless `use_regular_nms` is set: with more, LiteRT writes
beside its outputs. NEG of bytes and int16 negates the integers as they are, whatever
their scales; PRELU of int16 has slopes of int8.

Weights that a file keeps without their zeros (DENSIFY, pruned models) have them again
from import on, whether DENSIFY or a layer reads them. STABLEHLO_COMPOSITE, an operator
by name as litert-torch writes it, is compiled as the subgraph that the file has for it;
of a file with several signatures, `--signature NAME` chooses one
([several-models.md](several-models.md) has them as models of one image). BATCH_MATMUL
of int16 by int8 gives LiteRT's integers, too.

TensorFlow Lite Micro ({{version}}) registers {{registered}} builtin operators: all are
here, in every type in which it computes them (last column), and their integers are
compared with those that it gave (`tests/frontends/tflm.json`). Where it computes
otherwise than LiteRT, `--rounding tflm` does as it:

- Dense layers, SUM and L2_NORMALIZATION of int8 round twice; dense layers of int16 have
  15 bits of the scale, as convolutions.
- UNIDIRECTIONAL_SEQUENCE_LSTM of int8 has curves of its own. It alone has
  UNIDIRECTIONAL_SEQUENCE_LSTM and SQUARED_DIFFERENCE of int16, ADD_N and CUMSUM of
  int8, SVDF with a state of int8.
- RELU6 of int8 and int16 clips the integers of its input, whatever the scale of its
  output. RELU and LEAKY_RELU have the ratio of the scales in float64, not float32.
- RSQRT of int16 is computed as of int8; in LiteRT by 513 points with lines between.
- ADD and SUB of int16 have one rule for all scales; LiteRT has another for powers of 2.
  ADD of int32 has no fused activation.
- EMBEDDING_LOOKUP of int8 takes the scale of the first row for all.
- SPACE_TO_BATCH_ND of int8 fills with 0, not with the zero point.
- Sums of ADD_N and CUMSUM of int8 begin with the zero point, taken off once more
  (otherwise with 0).

Two of its kernels have no meaning and are not followed: GREATER of int16 computes with
numbers that are never set, LOGICAL_AND and LOGICAL_OR read the bytes of any type as
bool.

| operator | passed C | passed LLVM | of | types | unknown to LiteRT | Micro has |
| --- | ---: | ---: | ---: | --- | --- | --- |
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
            known = code in tflm.page()["operators"] or code in SIGNAL
            micro = "yes" if known else ""
            lines.append(f"| {code} | | | | in tests of its own | | {micro} |")
            continue
        passed = counts[code]["passed"]
        every = sum(counts[code].values()) - counts[code]["unknown"]
        bare = ", ".join(sorted(unknown[code]))
        kinds = passing.get(code, "")
        micro = ", ".join(tflm.types_of(code))
        micro = micro or ("yes" if code in tflm.page()["operators"] else "")
        cells = (code, passed, passed, every, kinds, bare, micro)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    version, registered = (tflm.page()[key] for key in ("version", "operators"))
    opening = OPENING.format(
        count=len(found), version=version, registered=len(registered)
    )
    return opening + "\n".join(lines) + "\n"


def with_section(page: str, made: str) -> str:
    """The page with this section instead of the one that it has; kernels are last."""
    kept = re.split(rf"\n*^{TITLE}$", page, maxsplit=1, flags=re.M)[0]
    before = made.partition(kernel_table.HEAD)[0].rstrip()
    return f"{kept.rstrip()}\n\n{before}\n\n{kernel_table.section()}"


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
