"""What Python users meet: what can be loaded, what is printed, what a run returns."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.errors import BuildError, BuildWarning
from pybuild.host.native import Net
from pybuild.library import Library

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
INT8, F32 = DIGITS / "digits_int8.tflite", DIGITS / "digits_f32.onnx"


@pytest.fixture(scope="module")
def library() -> Library:
    return pybuild.load(INT8).build(name="digits")


@pytest.fixture(scope="module")
def net(library: Library) -> Net:
    return library.host()


# ---- what can be loaded ---------------------------------------------------------


class _Path:
    """os.PathLike, no Path."""

    def __fspath__(self) -> str:
        return str(F32)


def test_load_takes_paths_bytes_and_messages_of_onnx() -> None:
    want = pybuild.load(str(F32)).graph
    given = [_Path(), F32.read_bytes(), bytearray(F32.read_bytes()), onnx.load(F32)]
    for what in given:
        model = pybuild.load(what)  # type: ignore[arg-type]
        assert model.graph.nodes == want.nodes, type(what)
        assert model.rounding == "onnx"
    assert pybuild.load(INT8.read_bytes()).rounding == "litert"
    assert pybuild.load(F32.read_bytes()).build().name == "model"


def test_build_takes_what_load_takes() -> None:
    assert pybuild.build(INT8.read_bytes(), name="a").name == "a"


@pytest.mark.parametrize("suffix", [".tflite", ".json", ".txt", ".pb", ""])
def test_the_bytes_say_the_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"renamed{suffix}"
    path.write_bytes(F32.read_bytes())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert pybuild.load(path).rounding == "onnx"
    told = [str(one.message) for one in said if one.category is BuildWarning]
    kinds = {".tflite": "TensorFlow Lite", ".json": "graph JSON"}
    wrong = f"{path.name}: is not {kinds.get(suffix)} but ONNX, and is read as that"
    assert told == ([wrong] if suffix in kinds else [])


def test_a_renamed_model_is_checked_against_its_own_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pybuild.cli import main

    path = tmp_path / "renamed.onnx"
    path.write_bytes(INT8.read_bytes())
    words = ["check", str(path), "--ref", "litert", "--samples", "2"]
    assert main([*words, "--backend", "llvm"]) == 0
    out, err = capsys.readouterr()
    assert "against LiteRT" in out
    said = "warning: renamed.onnx: is not ONNX but TensorFlow Lite, and is read as that"
    assert err.splitlines() == [said]


class Module:
    """As a network of PyTorch."""


Module.__module__ = "torch.nn.modules.module"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (io.BytesIO(b"x"), "_io.BytesIO: is not a model. Hint: its path, or the bytes: "
         "load(file.read())"),
        (None, "None is not a model. Hint: a path, bytes, an onnx.ModelProto or the "
         "text of a graph JSON"),
        (12, "builtins.int: is not a model. Hint: a path, bytes, an onnx.ModelProto or "
         "the text of a graph JSON"),
        (Module(), "torch.nn.modules.module.Module: is not a model. Hint: "
         "pybuild.load(torch.export.export(model.eval(), (example_input,)))"),
        (b"", "model: is empty. Hint: export or download it again"),
        (b"\1" * 100_000, "model: is not in a supported model format. Hint: "
         "give .tflite, .onnx, .pt2 or graph .json"),
        ("a\0b", r"'a\x00b': cannot be read (is not a path)"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_said_shortly(what: object, message: str) -> None:
    with pytest.raises(BuildError) as error:
        pybuild.load(what)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_a_message_does_not_hold_the_text_that_is_no_path() -> None:
    with pytest.raises(BuildError) as error:
        pybuild.load("x\ny" * 10_000)
    said = str(error.value)
    assert said.startswith(r"'x\nyx\ny") and len(said) < 120


# ---- what a run takes and returns -----------------------------------------------


def test_run_returns_copies_of_the_outputs(net: Net) -> None:
    low = net.run(image=np.full((1, 8, 8, 1), -128, np.int8))
    assert list(low) == ["scores"]
    kept = low["scores"].copy()
    high = net.run(image=np.full((1, 8, 8, 1), 127, np.int8))
    assert not np.array_equal(kept, high["scores"])
    np.testing.assert_array_equal(low["scores"], kept)
    np.testing.assert_array_equal(high["scores"], net.get_output("scores"))


def test_lists_take_the_type_of_the_input(net: Net) -> None:
    values = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)
    want = net.run(image=values)["scores"]
    np.testing.assert_array_equal(net.run(image=values.tolist())["scores"], want)
    whole = values.astype(float).tolist()
    np.testing.assert_array_equal(net.run(image=whole)["scores"], want)


@pytest.mark.parametrize("bad", [0.5, 128, float("nan"), 1e300, "a", None])
def test_a_list_that_does_not_fit_says_so(net: Net, bad: object) -> None:
    values: list[object] = np.zeros((1, 8, 8, 1), int).tolist()
    values[0][0][0][0] = bad  # type: ignore[index]
    said = (
        "is not an array of numbers" if bad in ("a", None) else f"is int8, {bad} is not"
    )
    with pytest.raises(ValueError, match=f"'image'.*{said.replace('+', '.')}"):
        net.run(image=values)


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ([1, (1 << 24) + 1], "16777217"),
        ([(1 << 24) + 1, 0.5], "16777217"),
        ([(1 << 63) + 1, -1], "9223372036854775809"),
        ([1, 1e300], "1e.300"),
        ([1 << 25, 0.1], None),
        ([float(1 << 24) + 1, float("inf")], None),
    ],
)
def test_no_integer_of_a_list_is_rounded(values: list, lost: str | None) -> None:
    graph = pybuild.GraphBuilder("sums")
    x = graph.input("x", (2,), "float32")
    graph.output(graph.op("add", x, x), "y")
    net = pybuild.build(graph.build(), target="llvm").host()
    if lost is None:
        net.run(x=values)
        np.testing.assert_array_equal(net.get_output("y"), 2 * np.float32(values))
    else:
        with pytest.raises(ValueError, match=f"'x' is float32, {lost} is not"):
            net.run(x=values)


def test_arrays_of_another_type_are_refused_still(net: Net) -> None:
    with pytest.raises(ValueError, match=r"'image' is int8.*not int64"):
        net.run(image=np.zeros((1, 8, 8, 1), np.int64))


def test_real_numbers_in_and_out(library: Library, net: Net) -> None:
    real = np.linspace(-0.5, 1.5, 64).reshape(1, 8, 8, 1)
    scale, zero = library.report.inputs[0].scale, library.report.inputs[0].zero_point
    assert scale is not None and zero is not None
    steps = np.rint(real.astype(np.float32) / np.float32(scale))
    want = np.clip(steps + zero, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(net.quantise(real), want)
    np.testing.assert_array_equal(net.quantise(image=real.tolist())["image"], want)
    found = net.run(**net.quantise(image=real))
    end = library.report.outputs[0]
    assert end.scale is not None and end.zero_point is not None
    reals = (found["scores"].astype(float) - end.zero_point) * end.scale
    np.testing.assert_allclose(net.dequantise(**found)["scores"], reals, rtol=1e-6)
    assert net.dequantise(found["scores"]).dtype == np.float32


def test_floats_pass_through(library: Library) -> None:
    net = pybuild.load(F32).build().host()
    real = np.linspace(0, 1, 64).reshape(net.inputs[0].shape)
    given = net.quantise(real)
    assert given.dtype == np.float32
    np.testing.assert_array_equal(given, real.astype(np.float32))


def test_what_cannot_be_quantised_is_said(net: Net) -> None:
    with pytest.raises(ValueError, match=r"'image' is \[1, 8, 8, 1\], not \[8, 8\]"):
        net.quantise(np.zeros((8, 8)))
    with pytest.raises(ValueError, match="'image' holds a value that is not a number"):
        net.quantise(np.full((1, 8, 8, 1), np.nan))
    with pytest.raises(KeyError, match="input 'picture' is not known"):
        net.quantise(picture=np.zeros((1, 8, 8, 1)))


def test_run_takes_the_array_of_an_only_input(net: Net) -> None:
    real = np.linspace(-0.5, 1.5, 64).reshape(1, 8, 8, 1)
    given = net.quantise(real)
    found = net.run(image=given)
    for same in (net.run(given), net(given), net.run({"image": given})):
        np.testing.assert_array_equal(same["scores"], found["scores"])
    reals = net.dequantise(found)
    np.testing.assert_array_equal(reals["scores"], net.dequantise(found["scores"]))
    with pytest.raises(TypeError, match=r"run\(\) takes inputs by their names: image"):
        net.run(given, given)
    hint = r"Hint: net.quantise\(...\) makes its integers of real numbers"
    with pytest.raises(ValueError, match=f"is int8.*not float64.*{hint}"):
        net.run(real)
    with pytest.raises(ValueError, match=f"is int8, -0.5 is not. {hint}"):
        net.run(real.tolist())


def test_run_names_several_inputs() -> None:
    graph = pybuild.GraphBuilder("sum")
    a, b = graph.input("a", (1, 4), "float32"), graph.input("b", (1, 4), "float32")
    graph.output(graph.op("add", a, b), "y")
    net = pybuild.build(graph.build()).host()
    one = np.ones((1, 4), np.float32)
    with pytest.raises(TypeError, match=r"run\(\) takes inputs by their names: a, b"):
        net.run(one)
    assert net.run(a=one, b=one)["y"].sum() == 8


def test_a_closed_instance_says_so(library: Library) -> None:
    net = library.host()
    given = np.zeros((1, 8, 8, 1), np.int8)
    net.close()
    net.close()
    for use in (lambda: net.run(given), net.go, net.outputs, net.another):
        with pytest.raises(ValueError, match="the instance is closed"):
            use()


# ---- the page -------------------------------------------------------------------


def test_the_page_runs(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks, one after the other, in a folder with the examples."""
    page = (DIGITS.parents[1] / "docs" / "python.md").read_text()
    (tmp_path / "examples").symlink_to(DIGITS.parent)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    there: dict[str, object] = {}
    for block in blocks:
        exec(block, there)
    assert there["scores"].shape == (1, 10)  # type: ignore[attr-defined]
    assert f"\n{library!r}\n" in page


# ---- several models, names, types -----------------------------------------------


def test_images_are_made_of_whatever_can_be_built() -> None:
    graph = pybuild.load(F32).graph
    image = pybuild.build_image([INT8, str(F32)], name="both")
    assert list(image) == ["digits_int8", "digits_f32"]
    named = pybuild.build_image({"a": INT8.read_bytes(), "b": graph}, name="both")
    assert list(named) == ["a", "b"]


@pytest.mark.parametrize("one", [str(INT8), INT8, pybuild.load(INT8)])
def test_an_image_of_one_that_is_no_list_is_said(one: object) -> None:
    with pytest.raises(BuildError, match="build_image: takes several models, not one"):
        pybuild.build_image(one)  # type: ignore[arg-type]


def test_dir_has_every_name_and_imports_none() -> None:
    names = set(pybuild.__all__)
    assert names == {name for name in dir(pybuild) if not name.startswith("__")}
    assert {"load", "build", "quantise", "BuildWarning"} <= names
    assert all(getattr(pybuild, name) is not None for name in names)
    code = "import pybuild, sys; dir(pybuild); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


SCRIPT = """
from pathlib import Path
import numpy as np
import pybuild

model = pybuild.load(Path("a.tflite").read_bytes())
library = model.build("out", name="a", ram_limit="64K", force=True)
net = library.host()
found = net.run(image=np.zeros((1, 8, 8, 1), np.int8))
total: float = float(net.dequantise(**found)["scores"].sum())
given = net.quantise([[0.5]]).tobytes()
made = pybuild.quantise("a.onnx", {"x": np.zeros(3)}, test="test.npz")
said: tuple[str, ...] = made.report.warnings
image = pybuild.build_image([model, "b.onnx"], exclusive=[("a", "b")])
nets = image.host()
module = library["default"](pybuild.cpu())
reveal_type(pybuild.load("a.onnx"))
pybuild.load(3)
"""


@pytest.mark.slow
def test_scripts_of_users_have_types(tmp_path: Path) -> None:
    """Outside the checkout, by the marker py.typed; what is wrong is found."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir"]
    command += [str(DIGITS.parents[1] / ".mypy_cache"), "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    errors = [line for line in lines if ": error: " in line]
    assert len(errors) == 1 and 'Argument 1 to "load"' in errors[0], done.stdout
    (shown,) = (line for line in lines if "Revealed type" in line)
    assert "pybuild.model.Model" in shown


# ---- progress, hints ------------------------------------------------------------


def test_long_work_says_how_far_it_is(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []

    def show(step: int, of: int) -> None:
        done.append((step, of))

    def said() -> list[tuple[int, int]]:
        found = done.copy()
        done.clear()
        return found

    model = pybuild.load(F32, progress=show)
    assert said() == [(n, 3) for n in (1, 2, 3)]
    model.build(progress=show)
    assert said() == [(n, 4) for n in (1, 2, 3, 4)]
    model.build(tmp_path / "out", progress=show)
    assert said() == [(n, 5) for n in (1, 2, 3, 4, 5)]
    pybuild.quantise(model, DIGITS / "digits_calibration.npz", progress=show)
    reached = [at for at, of in said() if of == 100]
    assert reached == sorted(set(reached)) and len(reached) > 20
    assert reached[-1] == 100 and reached[-2] < 100
    pybuild.check(model, samples=2, backends=["llvm"], progress=show)
    assert said() == [(1, 2), (2, 2)]


def test_hints_name_packages_that_we_depend_on() -> None:
    """Those are on an index; this project itself may not be."""
    root = DIGITS.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    known = {re.split(r"[ \[><=;]", one)[0] for one in wanted}
    found = set[str]()
    for path in (root / "pybuild").rglob("*.py"):
        if "_build" not in path.parts:
            hints = re.findall(r"pip install ([^\n\"]*)", path.read_text())
            found |= {word for hint in hints for word in re.split(r", | or ", hint)[:1]}
    names = {name for one in found for name in one.split() if "{" not in one}
    assert names and names <= known
