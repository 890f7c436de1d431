"""Architectures of tests/exported/zoo.py by the quantisers that people use: does it
build, is it equal, how many instructions, how much RAM. Writes docs/models.md:

python -m tests.models.matrix [NAME[:FORM]...]   all, or those; the rest as it is there
"""

from __future__ import annotations

import functools
import logging
import re
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import Device, open_device
from pybuild.errors import BuildError
from pybuild.frontends.torch import converted
from pybuild.frontends.torch.reader.archive import read
from pybuild.verify.check import EQUAL_BUT, check
from pybuild.verify.samples import samples
from tests.boards.devices import CORES
from tests.frontends.torch.test_exported_programs import whole_biases
from tests.models.matrix_page import PAGE, Cell, kept, page
from tests.ops.litert import run_litert

ROOT = Path(__file__).resolve().parents[2]
PT2 = ROOT / "tests" / "exported" / "pt2"
LITERT = ROOT / "tests" / "exported" / "litert.zip"
NAMES = tuple(
    path.stem for path in sorted(PT2.glob("*.pt2")) if not path.stem.endswith("_int8")
)
DIMS = {"ds_cnn": {"s31": 1}}
SAMPLES = 3
STEPS = re.compile(r"differs here by (\d+) steps? in|differs here by")


@functools.cache
def float_model(name: str) -> onnx.ModelProto:
    data = (PT2 / f"{name}.pt2").read_bytes()
    made = converted(read(name, data, DIMS.get(name, {})))[0]
    made = onnx.shape_inference.infer_shapes(made)
    return made


def example(model: onnx.ModelProto, chance: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
        found[value.name] = (
            chance.standard_normal(shape).astype(np.float32)
            if kind.elem_type == onnx.TensorProto.FLOAT
            else chance.integers(0, 30, shape)
        )
    return found


def by_onnxruntime(model: onnx.ModelProto, path: Path, **options: Any) -> None:
    """quantize_static of a model, calibrated with 8 seeded inputs."""
    from onnxruntime import quantization as q

    class Samples(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            chance = np.random.default_rng(1)
            self.left = [example(model, chance) for _ in range(8)]

        def get_next(self) -> Mapping[str, Any] | None:
            return self.left.pop() if self.left else None

    given = path.with_suffix(".float.onnx")
    onnx.save(model, given)
    kinds = {
        "u8": q.QuantType.QUInt8,
        "s8": q.QuantType.QInt8,
        "s16": q.QuantType.QInt16,
    }
    act, weight = kinds[options["act"]], kinds[options["weight"]]
    if options["form"] == "dynamic":
        q.quantize_dynamic(
            given, path, weight_type=weight,
            op_types_to_quantize=["MatMul", "Gemm", "Conv"],
        )  # fmt: skip
        return
    extra = {"ActivationSymmetric": True} if options["act"] == "s16" else {}
    q.quantize_static(
        given, path, Samples(), quant_format=q.QuantFormat[options["form"]],
        activation_type=act, weight_type=weight, extra_options=extra,
        per_channel=options.get("by_channel", False),
    )  # fmt: skip


# a net's name and a folder -> the file beside which it is checked, and the model
Maker = Callable[[str, Path], tuple[Path, pybuild.Model]]


def _onnxruntime(form: str, act: str, weight: str, by_channel: bool = False) -> Maker:
    def make(name: str, folder: Path) -> tuple[Path, pybuild.Model]:
        options = {"form": form, "act": act, "weight": weight}
        path = folder / f"{name}.onnx"
        by_onnxruntime(float_model(name), path, by_channel=by_channel, **options)
        return path, pybuild.load(path)

    return make


def _float(name: str, folder: Path) -> tuple[Path, pybuild.Model]:
    path = folder / f"{name}.onnx"
    onnx.save(float_model(name), path)
    return path, pybuild.load(path)


def _pt2e(name: str, folder: Path) -> tuple[Path, pybuild.Model]:
    data = (PT2 / f"{name}_int8.pt2").read_bytes()
    path = folder / f"{name}.onnx"
    onnx.save(converted(whole_biases(read(name, data, {})))[0], path)
    return path, pybuild.load(PT2 / f"{name}_int8.pt2")


def _ours(name: str, folder: Path) -> tuple[Path, pybuild.Model]:
    (path, model), chance = _float(name, folder), np.random.default_rng(1)
    some = [example(float_model(name), chance) for _ in range(8)]
    data = {key: np.stack([one[key] for one in some]) for key in some[0]}
    return path, pybuild.quantise(model, data).model


def _litert(form: str = "") -> Maker:
    """A file of tests/exported/export_litert.py."""

    def make(name: str, folder: Path) -> tuple[Path, pybuild.Model]:
        file = f"{name}{'.' * bool(form)}{form}.tflite"
        with zipfile.ZipFile(LITERT) as kept_there:
            path = Path(kept_there.extract(file, folder))
        return path, pybuild.load(path)

    return make


# as the columns of the page are called
FORMS: dict[str, Maker] = {
    "float": _float,
    "QDQ u8u8": _onnxruntime("QDQ", "u8", "u8"),
    "QDQ u8s8": _onnxruntime("QDQ", "u8", "s8"),
    "QDQ s8s8 by channel": _onnxruntime("QDQ", "s8", "s8", by_channel=True),
    "QDQ s16s8": _onnxruntime("QDQ", "s16", "s8"),
    "QOperator u8s8": _onnxruntime("QOperator", "u8", "s8"),
    "dynamic": _onnxruntime("dynamic", "u8", "s8"),
    "PT2E": _pt2e,
    "crt": _ours,
    "LiteRT float": _litert(),
    "int8 by tensor": _litert("int8_tensor"),
    "int8 by channel": _litert("int8_channel"),
    "16x8": _litert("int16"),
    "dynamic range": _litert("dynamic"),
    "float16": _litert("float16"),
}


@functools.cache
def board() -> Device:
    return open_device(CORES["cortex-m4"], "gcc", "qemu", "cortex-m4")


def instructions(model: pybuild.Model) -> int:
    return bench_on_board(board(), model.build(target="cortex-m4")).instructions


def measured(name: str, form: str, count: bool = True) -> Cell:
    """One cell: made, built and compared, as a user does; count: instructions, too."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path, model = FORMS[form](name, Path(folder))
        except BuildError as error:
            return Cell("refused", why=str(error).splitlines()[0])
        except Exception as error:  # of a quantiser, which has classes of its own
            return Cell("no file", why=f"its quantiser: {str(error).split(' : ')[-1]}")
        try:
            library = model.build()
            ref = "numpy" if form == "crt" else "standard" if form == "PT2E" else "auto"
            found = check(path, library, ["llvm"], ref=ref, samples=SAMPLES)
            counted = instructions(model) if count else 0
        except BuildError as error:
            return Cell("refused", why=str(error).splitlines()[0])
        said = _said(found) if form != "dynamic range" else _near(path, library, found)
    return Cell(said, library.report.ram.arena, counted)


def _near(path: Path, library: Any, found: Any) -> str:
    """LiteRT makes integers of what layers read; how far that is from their floats."""
    assert found.ok and "hybrid" in found.notes[-1], found
    graph, far = library.plan.graph, 0.0
    net = library.host("llvm")
    for given in samples(graph, SAMPLES, 0):
        have = net.run(**given.inputs)
        (want,) = run_litert(path.read_bytes(), [given.inputs])
        for name in graph.outputs:
            away = float(np.abs(have[name] - want[name]).max())
            far = max(far, away / (float(np.ptp(want[name])) or 1.0))
    net.close()
    return "=" if far <= 1e-5 else f"{far:.1%}"


def _said(found: Any) -> str:
    tally = found.backends["llvm"]
    if not found.ok:
        return f"{max(tally.unequal, tally.mismatches)} unequal"
    for note in found.notes:
        if note.startswith(EQUAL_BUT):
            count = max(tally.unequal, tally.mismatches)
            return f"= but {count} {'at ties' if ' at ties' in note else 'rounded'}"
        if match := STEPS.search(note):
            return f"= std, {match[1] or '-'}"
    return "=" if not tally.unequal else f"= but {tally.unequal}"


def main(names: list[str]) -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    cells = kept() if names else {}
    for asked in names or NAMES:
        name, _, one = asked.partition(":")
        for form in [one] if one else FORMS:
            if form == "PT2E" and not (PT2 / f"{name}_int8.pt2").exists():
                continue
            cells.setdefault(name, {})[form] = cell = measured(name, form)
            print(name, form, cell, cell.why, flush=True)
            if names:
                PAGE.write_text(page(cells))
    PAGE.write_text(page(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
