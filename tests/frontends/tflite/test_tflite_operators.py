"""Random files of one operator against LiteRT's reference kernels; a few in the default
run, all in the sweep.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pybuild.errors import BuildError
from pybuild.frontends.tflite import OPERATORS, load
from pybuild.frontends.tflite.operators.signal import SIGNAL
from tests.frontends.tflite.cases import Outcome, outcomes
from tests.frontends.tflite.draws import DRAWS, ELEMENTS, all_cases, drawn
from tests.frontends.tflite.layers import LAYERS
from tests.frontends.tflite.moves import MOVES
from tests.frontends.tflite.products import PRODUCTS
from tests.frontends.tflite.recurrent import RECURRENT
from tests.frontends.tflite.table import CASES, rows, run, types

# the files of each in the default run that must pass, at least
FAMILIES = {
    "elements": (ELEMENTS, 130),
    "moves": (MOVES, 150),
    "layers": ({**LAYERS, **PRODUCTS, **RECURRENT}, 34),
    "int16": (
        ("BATCH_MATMUL", "LOG", "NEG", "PRELU", "RESIZE_BILINEAR", "STRIDED_SLICE"),
        6,
    ),
}
# of the types of an operator, those in the default run
QUICK = ("float32", "int8", "uint8", "int32", "bool")


def _bad(found: list[Outcome]) -> str:
    return "\n".join(
        f"{one.key} {one.result} {one.why}"
        for one in found
        if one.result in ("wrong", "refused")
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_one_file_of_each_type(family: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    known, least = FAMILIES[family]
    kinds = ("int16",) if family == "int16" else QUICK
    chosen = [key for key in all_cases(1) if key[0] in known and key[1] in kinds]
    found = list(outcomes(chosen))
    assert not _bad(found)
    assert sum(one.result == "passed" for one in found) >= least


@pytest.mark.sweep
def test_all_files_are_as_the_page_says() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    found = run(CASES)
    assert not _bad(found)
    assert sum(one.result == "passed" for one in found) >= 2000
    page = {code: kinds for code, (_, _, kinds) in rows().items() if code in DRAWS}
    assert types(found) == page, "python -m tests.frontends.tflite.table writes it"


# these keep, choose or call: test_tflite_variables, _control, _subgraphs, _detection;
# signal/ has a file of each of its operators
OWN = (
    "ASSIGN_VARIABLE", "CALL_ONCE", "CUSTOM TFLite_Detection_PostProcess", "DENSIFY",
    "IF",
    "READ_VARIABLE", "STABLEHLO_COMPOSITE", "VAR_HANDLE", "WHILE",
)  # fmt: skip


def test_every_operator_of_the_table_is_tested() -> None:
    """By files that pass, as the page says, or by name in a test of what they keep."""
    passed, here = rows(), Path(__file__).parent
    text = "".join(path.read_text() for path in sorted(here.rglob("test_tflite_*.py")))
    assert OPERATORS.keys() == {*DRAWS, *OWN, *SIGNAL}
    assert not [code for code in OWN if f'"{code}"' not in text]
    bare = [code for code in DRAWS if not passed.get(code, (0,))[0]]
    assert not bare, "python -m tests.frontends.tflite.table writes the page anew"


@pytest.mark.parametrize(
    ("code", "kind", "what"),
    [
        ("SIN", "int32", "'t0' is int32, which is not supported. Hint: LiteRT has it "
                         "for float32"),
        ("LOGICAL_AND", "float32", "'t0' is float32, which is not supported. Hint: "
                                   "LiteRT has it for bool"),
        ("SUM", "bool", "'t0' is bool, which is not supported. Hint: LiteRT has it "
                        "for float32, int32, int64, int8, uint8, int16"),
        ("NEG", "uint8", "'t0' is uint8, which is not supported. Hint: LiteRT has it "
                         "for float32, int32, int64, int8, int16"),
        ("CUMSUM", "bool", "'t0' is bool, which is not supported. Hint: LiteRT has it "
                           "for float32, int32, int64, int8"),
    ],
)  # fmt: skip
def test_types_without_a_kernel_anywhere(code: str, kind: str, what: str) -> None:
    with pytest.raises(BuildError) as caught:
        load("m.tflite", drawn(code, kind, 0).bytes(), {})
    assert str(caught.value.problems[0]).endswith(f"({code}): {what}")
