"""docs/models.md: its cells are what is measured; a sample here, all in a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import matrix
from tests.models.matrix import FORMS, NAMES
from tests.models.matrix_page import TABLES, page, read, shown
from tests.toolchains import require, require_module

# of every form one, of different architectures
SAMPLE = (
    ("tcn", "float"), ("audio_1_d", "QDQ s8s8 by channel"), ("ds_cnn", "QDQ u8u8"),
    ("autoencoder", "QDQ s16s8"), ("audio_1_d", "QOperator u8s8"), ("tcn", "dynamic"),
    ("tcn", "PT2E"), ("autoencoder", "crt"), ("tcn", "LiteRT float"),
    ("ds_cnn", "int8 by tensor"), ("gpt_cached", "int8 by channel"), ("tcn", "16x8"),
    ("audio_1_d", "dynamic range"), ("autoencoder", "float16"),
)  # fmt: skip
COUNTED = (("autoencoder", "int8 by channel"), ("tcn", "16x8"))


def test_every_architecture_is_there() -> None:
    assert set(shown()) == set(NAMES)
    for name, row in shown().items():
        for form in FORMS:
            missing = form == "PT2E" and not (matrix.PT2 / f"{name}_int8.pt2").exists()
            assert bool(row[form]) != missing, (name, form)


@pytest.mark.parametrize(("name", "form"), SAMPLE)
def test_a_cell(name: str, form: str) -> None:
    require_module("ai_edge_litert" if form in TABLES[1] else "onnxruntime")
    have, want = matrix.measured(name, form, count=False), read(shown()[name][form])
    assert (have.equal, have.ram) == (want.equal, want.ram)


@pytest.mark.parametrize(("name", "form"), COUNTED)
def test_its_instructions(name: str, form: str, tmp_path: Path) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    [_, model] = FORMS[form](name, tmp_path)
    want = read(shown()[name][form]).instructions
    # kernels change between two runs of the page, by less than another net would
    assert abs(matrix.instructions(model) - want) <= 0.1 * want


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_cell(name: str) -> None:
    """But its instructions, which are of the revision that the page names."""
    require_module("onnxruntime")
    for form, text in shown()[name].items():
        if text:
            have, want = matrix.measured(name, form, count=False), read(text)
            assert (have.equal, have.ram) == (want.equal, want.ram), form


def test_each_form_is_in_one_table() -> None:
    assert sorted(form for forms in TABLES for form in forms) == sorted(FORMS)


def test_a_refusal_is_said_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(name: str, path: Path) -> object:
        raise ValueError("[X] : 1 : no such thing")

    monkeypatch.setitem(FORMS, "float", no)
    cell = matrix.measured("tcn", "float")
    text = page({"tcn": {"float": cell}})
    assert "| tcn | no file |" in text
    assert text.endswith("- tcn, float: its quantiser: no such thing\n")
