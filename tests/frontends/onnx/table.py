"""Writes docs/operators.md and the ONNX section of docs/benchmarks-values.md from a run
of all cases of onnx.backend.test: python -m tests.frontends.onnx.table.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from pybuild.frontends.onnx.load import OPERATORS
from tests.bench.costs import Table
from tests.conftest import ROOT
from tests.frontends.onnx.cases import (
    BACKENDS,
    BATCH,
    KINDS,
    Outcome,
    cases,
    model_and_data,
    outcomes,
)
from tests.frontends.tflite import table as tflite_table

TITLE = "ONNX's own tests"
PAGE = ROOT / "docs" / "operators.md"
WORKERS = 3
# as measured by the users' study of other tools, onnx 1.23.2: node cases
OTHERS = (
    ("onnx2c, node", 1374, 447, 565, "", 21),
)  # fmt: skip
OPENING = """# ONNX operators

Written by `python -m tests.frontends.onnx.table` from the tables of the code and a run
of every case of `onnx.backend.test`; do not edit. A case counts as passed when the
generated C and the code from LLVM both give what ONNX expects; then for each back end
the types of inputs and outputs, with the cases that it passes. An operator that is not
here but that
ONNX defines by others is written out first; what remains is refused with a reason by
`crt inspect`.

| operator | domain | cases passed | of | C | LLVM |
| --- | --- | ---: | ---: | --- | --- |
"""


def operators(found: Iterable[Outcome], types: dict[str, set[str]]) -> str:
    """docs/operators.md"""
    passed: dict[str, int] = defaultdict(int)
    every: dict[str, int] = defaultdict(int)
    seen: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in found:
        for kind in one.operators:
            every[kind] += 1
            passed[kind] += one.result == "passed"
            for code in one.by:
                seen[kind, code].update(types[one.name])
    rows = set(OPERATORS) | {kind.rpartition(".")[::2] for kind in passed}
    lines = []
    for domain, kind in sorted(rows):
        name = f"{domain}.{kind}".removeprefix(".")
        cells = [kind, domain or "ai.onnx", str(passed[name]), str(every[name])]
        for code in BACKENDS:
            counts = sorted(seen[name, code].items())
            cells.append(", ".join(f"{name} {count}" for name, count in counts))
        lines.append(f"| {' | '.join(cells)} |")
    return OPENING + "\n".join(lines) + "\n"


def counted(found: dict[str, list[Outcome]]) -> Table:
    """The section of docs/benchmarks-values.md."""
    rows: list[tuple[Any, ...]] = []
    for kind, many in found.items():
        passed = [one for one in many if one.result == "passed"]
        plain = sum(not one.steered for one in passed)
        refused = sum(one.result == "refused" for one in many)
        wrong = len(many) - len(passed) - refused
        rows.append((f"crt, {kind}", len(many), plain, len(passed), refused, wrong))
        rows.append((f"onnxruntime, {kind}", len(many), *_by_onnxruntime(kind)))
    rows += OTHERS
    says = (
        "`python -m tests.frontends.onnx.table`: cases of onnx.backend.test, without "
        "those that are the body of a function written out. Passed: by the generated "
        "C and by "
        "LLVM alike. Steered: also with the values of inputs that decide a shape "
        "taken from the case, as `crt build --input-value` and `pybuild.backend` do. "
        "onnx2c as the study of other tools has it, of another selection of cases."
    )
    columns = ("", "cases", "passed", "with steering", "refused", "wrong")
    return Table(TITLE, says, columns, tuple(rows))


def _by_onnxruntime(kind: str) -> tuple[int, int, int, int]:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    passed = refused = wrong = 0
    for case in cases(kind):
        model, sets = model_and_data(case)
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
            names = [value.name for value in session.get_inputs()]
            made = [session.run(None, _fed(names, given)) for given, _ in sets]
        except Exception:  # whatever onnxruntime throws
            refused += 1
            continue
        wanted = [outputs for _, outputs in sets]
        good = all(_similar(case, a, b) for a, b in zip(wanted, made, strict=True))
        passed, wrong = passed + good, wrong + (not good)
    return passed, passed, refused, wrong


def _fed(names: Sequence[str], given: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, given, strict=False))


def _similar(case: Any, wanted: Sequence[Any], made: Sequence[Any]) -> bool:
    from onnx.backend.test.runner import Runner

    try:
        Runner.assert_similar_outputs(wanted, made, case.rtol, case.atol)
    except Exception:
        return False
    return True


def types_of(case: Any) -> set[str]:
    """Of all inputs and outputs."""
    from onnx import TensorProto

    model = model_and_data(case)[0]
    kinds = {
        value.type.tensor_type.elem_type
        for value in (*model.graph.input, *model.graph.output)
        if value.type.HasField("tensor_type")
    }
    return {TensorProto.DataType.Name(kind).lower() for kind in kinds}


def with_section(text: str, table: Table) -> str:
    """A page with its section of that title replaced, or one more at the end."""
    found = re.search(
        rf"^## {re.escape(table.title)}\n.*?(?=^## |\Z)", text, re.M | re.S
    )
    made = table.markdown()
    if found is None:
        return text.rstrip() + "\n\n" + made.rstrip() + "\n"
    after = text[found.end() :]
    return text[: found.start()] + made + ("\n" if after else "") + after


def run() -> tuple[Table, str, list[Outcome]]:
    """The section, the page, and what both are made of."""
    found: dict[str, list[Outcome]] = {}
    types: dict[str, set[str]] = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            found[kind] = _outcomes(kind)
            types |= {case.name: types_of(case) for case in cases(kind)}
        table = counted(found)
    every = [one for many in found.values() for one in many]
    return table, operators(every, types), every


def _outcomes(kind: str) -> list[Outcome]:
    """In processes that have the cases already."""
    starts = range(0, len(cases(kind)), BATCH)
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(WORKERS, mp_context=fork) as pool:
        parts = pool.map(_part, [(kind, start) for start in starts])
        return [one for part in parts for one in part]


def _part(given: tuple[str, int]) -> list[Outcome]:
    kind, start = given
    return list(outcomes(cases(kind)[start : start + BATCH]))


def measured() -> Table:
    """For `./dev bench`; the page of operators is written on the way."""
    table, page, _ = run()
    PAGE.write_text(tflite_table.after(page))
    return table


def main() -> int:
    table, page, every = run()
    benchmarks = ROOT / "docs" / "benchmarks-values.md"
    benchmarks.write_text(with_section(benchmarks.read_text(), table))
    PAGE.write_text(tflite_table.after(page))
    print(table.markdown())
    wrong = [one for one in every if one.result == "wrong"]
    for one in wrong:
        print(one.name, one.why)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
