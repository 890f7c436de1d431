"""docs/models.md: its cells are what is measured; a sample here, all in a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import matrix
from tests.models.matrix import FORMS, NAMES, Cell, shown
from tests.toolchains import require_module

# of every form one, of different architectures
SAMPLE = (
    ("tcn", "float"), ("audio_1_d", "QDQ s8s8 by channel"), ("ds_cnn", "QDQ u8u8"),
    ("autoencoder", "QDQ s16s8"), ("audio_1_d", "QOperator u8s8"), ("tcn", "dynamic"),
    ("tcn", "PT2E"), ("autoencoder", "crt"),
)  # fmt: skip


def said(cell: Cell) -> str:
    return f"{cell.equal}; {cell.ram:,}" if cell.ram else cell.equal


def test_every_architecture_is_there() -> None:
    assert set(shown()) == set(NAMES)
    for name, row in shown().items():
        for form in FORMS:
            missing = form == "PT2E" and not (matrix.PT2 / f"{name}_int8.pt2").exists()
            assert bool(row[form]) != missing, (name, form)


@pytest.mark.parametrize(("name", "form"), SAMPLE)
def test_a_cell(name: str, form: str) -> None:
    require_module("onnxruntime")
    assert said(matrix.measured(name, form)) == shown()[name][form]


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_cell(name: str) -> None:
    require_module("onnxruntime")
    for form, text in shown()[name].items():
        assert not text or said(matrix.measured(name, form)) == text, form


def test_a_refusal_is_said_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(name: str, path: Path) -> object:
        raise ValueError("[X] : 1 : no such thing")

    monkeypatch.setitem(FORMS, "float", no)
    cell = matrix.measured("tcn", "float")
    text = matrix.page({"tcn": {"float": cell}})
    assert "| tcn | no file |" in text
    assert text.endswith("- tcn, float: its quantiser: no such thing\n")
