"""What files of the field have and converters of today do not write: biases with the
axis of their weights, a softmax from int8 to int16, dilations beyond any image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.verify.check import check
from tests.fieldnets.maker import Maker
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

SHAPE = (8, 8, 3)


class OldMaker(Maker):
    """quantized_dimension 3 on biases of one dimension, as TFLM's person_detect has."""

    def _file_tensor(self, at: int) -> FileTensor:
        made = super()._file_tensor(at)
        return replace(made, axis=3) if made.kind == "INT32" and made.scale else made


def net(maker: Maker) -> bytes:
    x = maker.depthwise(maker.conv(maker.x, 8, 3))
    return maker.file(maker.conv(x, 16))


def outputs(file: bytes, x: Array) -> list[Array]:
    found = []
    library = pybuild.load(file).build()
    for backend in ("c", "llvm"):
        running = library.host(backend)
        (name,) = library.plan.graph.inputs
        running.run(**{name: x})
        found.append(np.array(running.get_output(0)))
        running.close()
    return found


def test_a_bias_may_have_the_axis_of_its_weights(tmp_path: Path) -> None:
    today, old = net(Maker(1, SHAPE)), net(OldMaker(1, SHAPE))
    assert today != old
    x = np.random.default_rng(0).integers(-128, 128, (1, *SHAPE)).astype(np.int8)
    wanted = outputs(today, x)[0]
    for have in outputs(old, x):
        np.testing.assert_array_equal(have, wanted)
    # LiteRT of today refuses it: what is compared then is said
    path = tmp_path / "old.tflite"
    path.write_bytes(old)
    seen = check(path, pybuild.load(path).build(), ("llvm",), samples=2)
    assert seen.ok and seen.reference.startswith("numpy")
    assert any("LiteRT" in note and "numpy" in note for note in seen.notes)


@pytest.mark.parametrize("code", ["QUANTIZE", "DEQUANTIZE", "TANH"])
def test_an_operator_may_have_the_new_number_alone(code: str) -> None:
    """As ai-edge-quantizer writes those that it inserts."""
    real, whole = (
        FileTensor("x", (1, 8), "FLOAT32", None),
        FileTensor("y", (1, 8), "INT8", None, (0.5,), (3,)),
    )
    kinds = {"QUANTIZE": (real, whole), "DEQUANTIZE": (whole, real)}
    x, y = kinds.get(code, (real, replace(real, name="z")))
    operator = FileOperator(code, (0,), (1,), "", {})
    file = write([x, y], [operator], [0], [1], old_codes=False)
    chance = np.random.default_rng(0)
    given = chance.integers(-9, 9, (1, 8)).astype("int8" if x is whole else "float32")
    (wanted,) = run_litert(file, [{x.name: given}])
    for have in outputs(file, given):
        np.testing.assert_allclose(have, wanted[y.name], 1e-6, 1e-6)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("scale", [0.02, 0.19, 1.7])
def test_softmax_of_int8_gives_int16(rows: int, scale: float) -> None:
    shape, given = (rows, 12), (float(np.float32(scale)),)
    tensors = [
        FileTensor("x", shape, "INT8", None, given, (3,)),
        FileTensor("y", shape, "INT16", None, (1 / 65536,), (-32768,)),
    ]
    operator = FileOperator("SOFTMAX", (0,), (1,), "SoftmaxOptions", {"Beta": 1.0})
    file = write(tensors, [operator], [0], [1])
    chance = np.random.default_rng(rows)
    for spread in (2, 30, 256):
        low = -min(spread, 256) // 2
        x = chance.integers(low, low + spread, shape).clip(-128, 127).astype(np.int8)
        (wanted,) = run_litert(file, [{"x": x}])
        for have in outputs(file, x):
            assert have.dtype == np.int16
            np.testing.assert_array_equal(have, wanted["y"])


@pytest.mark.parametrize("depthwise", [False, True])
def test_a_dilation_beyond_any_image_is_met_at_once(depthwise: bool) -> None:
    """Of a window that is padded one tap meets data; without padding none fits."""
    maker = Maker(1, SHAPE)
    made = maker.depthwise(maker.x) if depthwise else maker.conv(maker.x, 4, 3)
    last = maker.operators[-1]
    for padding in (0, 1):
        far = {"DilationHFactor": 2**31 - 1, "DilationWFactor": 2**31 - 1}
        options = {**last.options, **far, "Padding": padding}
        maker.operators[-1] = replace(last, options=options)
        if padding == 1:
            with pytest.raises(BuildError):
                pybuild.load(maker.file(made))
            continue
        graph = pybuild.load(maker.file(made)).build().plan.graph
        (node,) = (n for n in graph.nodes if "conv2d" in n.op)
        shape = graph.tensor(node.inputs[1]).shape
        assert (shape[:2] if depthwise else shape[1:3]) == (1, 1)
