"""A user's own samples: every form in which they are read, what is said of those that
cannot be right, and of those that can but look wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array
from pybuild.errors import BuildError, BuildWarning
from pybuild.quantisation.samples import samples_of
from tests.frontends.onnx.models import model

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
FLOAT = pybuild.load(DIGITS / "digits_f32.onnx")
INT8 = pybuild.load(DIGITS / "digits_int8.tflite")
(NAME,) = FLOAT.graph.inputs
with np.load(DIGITS / "digits_calibration.npz") as known:
    IMAGES, CLASSES = known[NAME][:20], known["labels"][:20]


# ---- forms ----------------------------------------------------------------------


def npz(folder: Path) -> Path:
    np.savez(folder / "d.npz", **{NAME: IMAGES}, labels=CLASSES)
    return folder / "d.npz"


def unnamed(folder: Path) -> Path:
    np.savez(folder / "d.npz", IMAGES, labels=CLASSES)
    return folder / "d.npz"


def by_input(folder: Path) -> Path:
    np.save(folder / f"{NAME}.npy", IMAGES)
    np.save(folder / "labels.npy", CLASSES)
    return folder


def by_sample(folder: Path) -> Path:
    for index, image in enumerate(IMAGES):
        np.save(folder / f"sample_{index:03}.npy", image)
    (folder / "labels.csv").write_text("\n".join(map(str, CLASSES)))
    return folder


def by_input_and_sample(folder: Path) -> Path:
    (folder / NAME).mkdir()
    for index, image in enumerate(IMAGES):
        np.save(folder / NAME / f"{index:03}.npy", image)
    np.save(folder / "labels.npy", CLASSES)
    return folder


def table(folder: Path) -> Path:
    rows = [
        [*map(repr, image.reshape(-1).astype(float).tolist()), str(label)]
        for image, label in zip(IMAGES, CLASSES, strict=True)
    ]
    head = [*(f"p{n}" for n in range(IMAGES[0].size)), "label"]
    text = "\n".join(",".join(row) for row in [head, *rows])
    (folder / "d.csv").write_text(text)
    return folder / "d.csv"


def of_semicolons(folder: Path) -> Path:
    path = table(folder)
    path.write_text(path.read_text().replace(",", ";"))
    return path


FORMS = [npz, unnamed, by_input, by_sample, by_input_and_sample, table, of_semicolons]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_samples(
    form: Callable[[Path], Path], tmp_path: Path
) -> None:
    found = samples_of(FLOAT.graph, form(tmp_path))
    assert found.count == 20
    given = found.inputs[NAME].reshape(IMAGES.shape)
    np.testing.assert_array_equal(given, IMAGES)
    assert found.labels is not None
    np.testing.assert_array_equal(found.labels, CLASSES)


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "txt"])
def test_labels_in_a_file_of_their_own(suffix: str, tmp_path: Path) -> None:
    data, labels = tmp_path / "x.npy", tmp_path / f"l.{suffix}"
    np.save(data, IMAGES)
    match suffix:
        case "npy":
            np.save(labels, CLASSES)
        case "npz":
            np.savez(labels, CLASSES)
        case "csv":
            lines = (f"{n}.png,{c}" for n, c in enumerate(CLASSES))
            labels.write_text("\n".join(line.split(",")[1] for line in lines))
        case _:
            labels.write_text("label\n" + "\n".join(map(str, CLASSES)) + "\n")
    found = samples_of(FLOAT.graph, data, labels)
    assert found.labels is not None
    np.testing.assert_array_equal(found.labels, CLASSES)


def test_real_numbers_become_integers_of_the_input(tmp_path: Path) -> None:
    (name,) = INT8.graph.inputs
    real = np.linspace(0, 1, 2 * 64, dtype=np.float32).reshape(2, 8, 8, 1)
    np.save(tmp_path / "x.npy", real)
    found = samples_of(INT8.graph, tmp_path / "x.npy").inputs[name]
    want = INT8.build().host().quantise(real[:1])
    np.testing.assert_array_equal(found[0], want)
    whole = np.arange(64, dtype=np.int64).reshape(1, 8, 8, 1)
    np.save(tmp_path / "x.npy", whole)
    found = samples_of(INT8.graph, tmp_path / "x.npy").inputs[name]
    np.testing.assert_array_equal(found.reshape(-1), whole.reshape(-1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,4\n", f"d.csv: has 2 columns of values, '{NAME}' has 64 values. Hint: "
         "a column for each, and one named labels for classes if there are any"),
        ("1,2\n3\n", "d.csv: line 2 has 1 columns, not 2. Hint: give .npz, .csv, .npy "
         "or a folder of .npy"),
        ("a,b\n3,x\n", "d.csv: line 2 has 2 columns that are not all numbers. Hint: "
         "give .npz, .csv, .npy or a folder of .npy"),
        ("a,b\n", "d.csv: has no numbers. Hint: give .npz, .csv, .npy or a folder of "
         ".npy"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(BuildError) as error:
        samples_of(FLOAT.graph, tmp_path / "d.csv")
    assert str(error.value) == message


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"has no \.npy files"):
        samples_of(FLOAT.graph, tmp_path)
    np.save(tmp_path / "a.npy", IMAGES[0])
    np.save(tmp_path / "b.npy", IMAGES[:2])
    with pytest.raises(BuildError, match=r"several shapes: .* in a\.npy, .* in b\.npy"):
        samples_of(FLOAT.graph, tmp_path)
    (tmp_path / "b.npy").write_bytes(b"\x93NUMPY and no more")
    with pytest.raises(BuildError, match=r"b\.npy: is a damaged \.npy file"):
        samples_of(FLOAT.graph, tmp_path)


def test_an_array_of_the_only_input_calibrates() -> None:
    with_names = pybuild.quantise(FLOAT, {NAME: IMAGES}).report
    assert pybuild.quantise(FLOAT, IMAGES).report == with_names
    assert pybuild.quantise(FLOAT, IMAGES.tolist()).report == with_names


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "data: is NoneType: no arrays and no path. Hint: give {name: array}, an "
         "array, or a path"),
        (3.5, "data: is float: no arrays and no path. Hint: give {name: array}, an "
         "array, or a path"),
        (np.zeros((3, 5)), f"calibration data: '{NAME}' is float64[3, 5]. Hint: give "
         "[N, 1, 8, 8] values"),
    ],
)  # fmt: skip
def test_what_is_no_data_is_said(data: object, message: str) -> None:
    with pytest.raises(BuildError) as error:
        pybuild.quantise(FLOAT, data)  # type: ignore[arg-type]
    assert str(error.value) == message


# ---- doubts ---------------------------------------------------------------------


def said_of(data: Array, what: pybuild.Model = FLOAT) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        report = pybuild.quantise(what, {what.graph.inputs[0]: data}).report
    told = [str(one.message) for one in said if one.category is BuildWarning]
    assert told == [f"calibration data: {doubt}" for doubt in report.warnings]
    return list(report.warnings)


def test_good_data_is_used_without_a_word() -> None:
    assert said_of(IMAGES) == []


def test_data_that_is_all_equal() -> None:
    (doubt,) = said_of(np.zeros_like(IMAGES))
    assert doubt == f"every value of '{NAME}' is 0: ranges mean nothing"
    (doubt,) = said_of(np.stack([IMAGES[0]] * 12))
    assert doubt == f"all 12 samples of '{NAME}' are the same"


def test_few_samples() -> None:
    rest = "what others would reach is cut off; 100 are a good number"
    assert said_of(IMAGES[:1]) == [f"1 sample is few to calibrate with: {rest}"]
    assert said_of(IMAGES[:9]) == [f"9 samples are few to calibrate with: {rest}"]
    assert said_of(IMAGES[:10]) == []


def test_images_of_0_to_255() -> None:
    (doubt,) = said_of(IMAGES / IMAGES.max() * 255)
    assert doubt.startswith(f"'{NAME}' reaches the first layer, '")
    assert doubt.endswith("with values of 0 to 255: this looks like the 0 to 255 of "
                          "images; give data scaled as in training")  # fmt: skip


def scaling(by: float) -> pybuild.Model:
    """A model that scales its input itself."""
    chance = np.random.default_rng(0)
    constants = {
        "by": np.array([by], np.float32),
        "w": chance.normal(size=(16, 4)).astype(np.float32),
    }
    nodes = [("Mul", ["x", "by"], ["s"], {}), ("MatMul", ["s", "w"], ["y"], {})]
    given = {"x": np.zeros((1, 16), np.float32)}
    return pybuild.load(model(nodes, given, ["y"], constants))


def test_a_model_that_scales_its_input_itself() -> None:
    bytes_ = np.random.default_rng(1).integers(0, 256, (20, 16)).astype(np.float32)
    assert said_of(bytes_, scaling(1 / 255)) == []
    (doubt,) = said_of(bytes_ / 255, scaling(1 / 255))
    assert "with values of at most 0.0039" in doubt
    (doubt,) = said_of(bytes_, scaling(1.0))
    assert "with values of 0 to 25" in doubt


def test_numbers_that_are_none_are_errors() -> None:
    for bad in (np.nan, np.inf):
        data = IMAGES.copy()
        data.reshape(-1)[70] = bad
        with pytest.raises(BuildError, match="1 values that are infinite or NaN"):
            pybuild.quantise(FLOAT, {NAME: data})


def test_the_command_line_says_so_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "zeros.npz", **{NAME: np.zeros_like(IMAGES)})
    words = ["inspect", FLOAT.path, "--json", "--quantise", str(tmp_path / "zeros.npz")]
    assert main(words) == 0
    out, err = capsys.readouterr()
    doubt = f"every value of '{NAME}' is 0: ranges mean nothing"
    assert err.splitlines() == [f"warning: calibration data: {doubt}"]
    assert f'"{doubt}"' in out
