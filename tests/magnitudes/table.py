"""Writes "Errors of float operators" of docs/operators.md from the bounds that the grid
of magnitudes holds: python -m tests.magnitudes.table.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.magnitudes.doors import ONNX, TFLITE
from tests.magnitudes.grid import Bound
from tests.magnitudes.test_rows import ROWS
from tests.toolchains import ROOT

PAGE = ROOT / "docs" / "operators.md"
HEAD, NEXT = "# Errors of float operators\n", "# Kernels by core\n"
OPENING = f"""{HEAD}
Written by `python -m tests.magnitudes.table`; do not edit. How far a result may be from
the true one (float64's), for any finite input: zeros, subnormal numbers, 1e-45 to 3e38,
ties, the ends of each function, of both signs. The tests hold these bounds for C and
LLVM, which give the same bits. *Steps* are units in the last place of float32, beside
the half of a step that rounding to it takes; "or" an amount means whichever is more.
Amounts of about 1e-38 say that results there are 0 or subnormal.

NaN in gives NaN out. Infinities give the limit; where the formula of the operator has
infinity times 0 or infinity less infinity (Gelu, Mish and Swish of minus infinity,
Softsign of infinity, a softmax of a row of only minus infinity), NaN, as in ONNX
Runtime and LiteRT.

float16 and bfloat16 are computed in float32, in between too, and rounded once: the
nearest float16, or its neighbour where the true result is nearly between two. Sums of
reductions, pools, norms and softmax are float32 as well.

Sin, Cos and Tan are right for every finite float32: from 2048 on the bits of 2 / pi
that an input asks for are taken, from a table of 28 bytes. Where the graph says that
an input is smaller (behind a tanh, a sigmoid, a clip, a dequantisation), neither the
table nor its code is linked. In float64 they are right up to 2^30.

| operator | format | within |
| --- | --- | --- |
"""
ROWS_TITLE = """
Of a row, relative to the greatest result of the row, and where a difference of inputs
is lost, to the greatest input (of norms, over the deviation). Squares of inputs must be
float32 numbers: norms and ReduceL2 of inputs between 1e-15 and 1.8e18.

| operator | of the greatest result | of the greatest input |
| --- | ---: | ---: |
"""


def words(bound: Bound, more: str) -> str:
    if more:
        return more
    if not bound.ulps and not bound.least:
        return "exact"
    steps = f"{bound.ulps:g} step{'s' * (bound.ulps != 1)}" if bound.ulps else "0"
    return f"{steps}, or {bound.least:g}" if bound.least else steps


def lines() -> Iterator[str]:
    for name, table in (("ONNX", ONNX), ("TensorFlow Lite", TFLITE)):
        for key, one in table.items():
            text = words(one.function.bound, one.function.words)
            given = "".join(f" {v}" for v in one.more)
            yield f"| {key}{given} | {name} | {text} |\n"


def section() -> str:
    rows = "".join(
        f"| {name} | {row.close:g} | {row.lost:g} |\n" for name, row in ROWS.items()
    )
    return f"{OPENING}{''.join(lines())}{ROWS_TITLE}{rows}\n"


def main() -> None:
    page = PAGE.read_text()
    before, _, after = page.partition(NEXT)
    before = before.partition(HEAD)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{section()}{NEXT}{after}")


if __name__ == "__main__":
    main()
