"""crt check and crt run, and pybuild.check, on a user's own samples: accuracy, which
classes are taken for which, and the difference to the reference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.verify.classes import REFERENCE, Classes, classes_of
from tests.toolchains import require

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
INT8, F32 = DIGITS / "digits_int8.tflite", DIGITS / "digits_f32.onnx"
with np.load(DIGITS / "digits_calibration.npz") as known:
    REAL = known["image"].reshape(-1, 8, 8, 1)[:40]
    LABELS = known["labels"][:40].copy()
LABELS[:3] = (LABELS[:3] + 1) % 10  # three that are wrong
RIGHT = 36  # and one that the model takes for another
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "own.npz"
    np.savez(path, image=REAL, labels=LABELS)
    return path


def said(capsys: Capture, *words: object, code: int = 0) -> dict[str, object]:
    assert main([*map(str, words), "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_accuracy_and_confusion(own: Path, capsys: Capture) -> None:
    found = said(capsys, "check", INT8, "--data", own, "--backend", "llvm")
    assert found["samples"] == 40 and found["ok"] is True
    classes = found["classes"]
    assert classes["right"] == {REFERENCE: RIGHT, "llvm": RIGHT}  # type: ignore[index]
    assert classes["accuracy"]["llvm"] == RIGHT / 40  # type: ignore[index]
    assert classes["changed"] == {"llvm": 0}  # type: ignore[index]
    table = np.array(classes["confusion"]["llvm"])  # type: ignore[index]
    assert table.shape == (10, 10) and table.sum() == 40 and table.trace() == RIGHT
    assert table.sum(1).tolist() == np.bincount(LABELS, minlength=10).tolist()
    for label in LABELS[:3]:  # it says the class before
        assert table[label, (label - 1) % 10] >= 1


def test_the_table_for_people(own: Path, capsys: Capture) -> None:
    assert main(["check", str(INT8), "--data", str(own), "--backend", "llvm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "reference: 36 of 40 right (90.0%)" in lines
    rest = "0 of 40 of another class than the reference says"
    assert f"llvm: 36 of 40 right (90.0%), {rest}" in lines
    assert "Label (row) and what reference, llvm said (column)" in lines
    (row,) = (line for line in lines if line.startswith(f"{LABELS[0]} "))
    assert len(row.split()) == 11


def test_labels_in_a_file_of_their_own(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", REAL)
    (tmp_path / "y.csv").write_text("\n".join(map(str, LABELS)))
    words = ["check", INT8, "--data", tmp_path / "x.npy", "--backend", "llvm"]
    found = said(capsys, *words, "--labels", tmp_path / "y.csv")
    assert found["classes"]["right"]["llvm"] == RIGHT  # type: ignore[index]
    found = said(capsys, *words)
    assert found["classes"] == {"count": 10, "changed": {"llvm": 0}}
    assert main(["check", str(INT8), "--labels", str(tmp_path / "y.csv")]) == 64
    assert capsys.readouterr().err.splitlines() == ["--labels: needs --data"]


def test_samples_that_do_not_fit(tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "d.npz", picture=REAL, labels=LABELS + 9)
    assert main(["check", str(INT8), "--data", str(tmp_path / "d.npz")]) == 2
    lines = capsys.readouterr().err.splitlines()
    first = int(np.flatnonzero(LABELS + 9 > 9)[0])
    assert lines[0] == (
        "d.npz: has no array 'image'. Hint: rename its array 'picture' to 'image'"
    )
    assert [line.split(". Hint")[0] for line in lines[1:]] == [
        f"d.npz: 'labels' holds {LABELS[first] + 9}, for sample {first}",
    ]


def test_what_differs_from_the_reference_is_a_mismatch(own: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    library = pybuild.load(INT8).build(rounding="single")
    found = pybuild.check(library, own, ref="litert", backends=["llvm"])
    assert not found.ok and found.backends["llvm"].mismatches > 0
    assert found.classes is not None and found.classes.right(REFERENCE) == RIGHT


def test_many_runs(own: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "y.npz"
    found = said(capsys, "run", INT8, "--data", own, "-o", out)
    assert found["samples"] == 40
    net = pybuild.load(INT8).build().host()
    want = [net.run(image=net.quantise(x[None]))["scores"] for x in REAL]
    with np.load(out) as file:
        np.testing.assert_array_equal(file["scores"], np.stack(want))
    shape = found["outputs"]["scores"]["shape"]  # type: ignore[index]
    assert shape == [40, 1, 10]
    one = said(capsys, "run", INT8)
    assert one["outputs"]["scores"]["shape"] == [1, 10]  # type: ignore[index]


# ---- boards ---------------------------------------------------------------------


@pytest.mark.slow
def test_on_a_simulated_board(own: Path, capsys: Capture) -> None:
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    found = said(capsys, "check", INT8, "--data", own, "--on", "mps2-an386")
    right = found["classes"]["right"]  # type: ignore[index]
    assert right == {REFERENCE: RIGHT, "mps2-an386": RIGHT}


@pytest.mark.slow
def test_at_the_end_of_a_line(own: Path, capsys: Capture) -> None:
    """The same firmware, calls and line as of a real board."""
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    where = "qemu:mps2-an386"
    found = said(capsys, "check", INT8, "--data", own, "--port", where)
    assert found["classes"]["right"] == {  # type: ignore[index]
        REFERENCE: RIGHT, where: RIGHT,
    }  # fmt: skip
    assert found["backends"][where]["mismatches"] == 0  # type: ignore[index]
    seeded = said(capsys, "check", INT8, "--samples", "3", "--port", where)
    assert seeded["samples"] == 3 and "classes" not in seeded


@pytest.mark.parametrize("option", [["--on", "microbit"], ["--per-layer"]])
def test_a_port_alone(option: list[str], capsys: Capture) -> None:
    assert main(["check", str(INT8), "--port", "tcp:nowhere:1", *option]) == 64
    said = f"--port: and {option[0]} cannot be combined"
    assert capsys.readouterr().err.splitlines() == [said]


def test_a_port_that_is_none(capsys: Capture) -> None:
    assert main(["check", str(INT8), "--port", "/dev/ttyUSB0"]) == 64
    said = capsys.readouterr().err
    assert "/dev/ttyUSB0: is not a place of a board. Hint: give" in said


# ---- from Python ----------------------------------------------------------------


def test_from_python(own: Path) -> None:
    done: list[tuple[int, int]] = []
    found = pybuild.check(
        INT8, own, backends=["llvm"], progress=lambda *step: done.append(step)
    )
    assert found.ok and found.classes is not None
    assert found.classes.right("llvm") == RIGHT
    assert done == [(n + 1, 40) for n in range(40)]
    library = pybuild.load(INT8).build()
    again = pybuild.check(library, REAL, LABELS, backends=["llvm"])
    assert again.classes == found.classes
    assert again.reference == found.reference


def test_models_that_came_as_bytes_are_compared_with_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not with another file that has that name by chance."""
    (tmp_path / "model.tflite").write_bytes(b"TFL3 another")
    monkeypatch.chdir(tmp_path)
    found = pybuild.check(INT8.read_bytes(), samples=2, backends=["llvm"])
    assert found.ok and found.reference.startswith("numpy")
    assert found.classes is None


def test_labels_without_data() -> None:
    with pytest.raises(BuildError, match="labels: need data, but none is given"):
        pybuild.check(INT8, labels=LABELS)


# ---- classes --------------------------------------------------------------------


def test_classes_are_counted() -> None:
    classes = Classes(3, (0, 1, 2, 2), {REFERENCE: (0, 1, 2, 1), "c": (0, 2, 2, 1)})
    assert (classes.right(REFERENCE), classes.right("c")) == (3, 2)
    assert classes.changed("c") == 1
    assert classes.confusion("c") == [[1, 0, 0], [0, 0, 1], [0, 1, 1]]


def test_an_output_of_one_value_tells_no_class() -> None:
    one = {"y": np.zeros((1, 1), np.float32)}
    assert classes_of("y", {"c": [one]}, None) is None
    assert classes_of("y", {"c": [{}]}, None) is None


def test_many_classes_are_a_list_of_the_worst(capsys: Capture) -> None:
    from pybuild.cli.output.tables import show_classes

    show_classes(Classes(100, (1, 1, 5, 7), {"c": (2, 2, 6, 7)}))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", "2", "2"] in lines and ["5", "6", "1"] in lines
    assert ["7", "7", "1"] not in lines
