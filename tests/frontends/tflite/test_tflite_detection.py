"""TFLite_Detection_PostProcess: boxes, classes and scores that LiteRT finds too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.ops.interpret import interpret
from tests.frontends.tflite.cases import Case, compiled, library_of
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

# "CUSTOM TFLite_Detection_PostProcess" in the table of operators
CODE = "TFLite_Detection_PostProcess"
BOXES, CLASSES, MOST = 24, 3, 7
OPTIONS: dict[str, Any] = {
    "max_detections": MOST, "max_classes_per_detection": 1, "num_classes": CLASSES,
    "nms_score_threshold": 0.25, "nms_iou_threshold": 0.5,
    "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
}  # fmt: skip
_QUANT = {"float32": ((), ()), "uint8": ((0.05,), (128,)), "int8": ((0.05,), (0,))}


def _file(kind: str, background: int, **options: Any) -> bytes:
    rng = np.random.default_rng(7)
    middles = rng.uniform(0.2, 0.8, (BOXES, 2))
    anchors = np.concatenate([middles, rng.uniform(0.2, 0.5, (BOXES, 2))], 1)
    quant = _QUANT[kind]
    name, share = kind.upper(), ((1 / 256,), (-128 if kind == "int8" else 0,))
    whole = anchors.astype(np.float32)
    if kind != "float32":
        whole = np.rint(anchors / 0.05 + quant[1][0]).astype(kind)
    shapes = (1, BOXES, 4), (1, BOXES, CLASSES + background)
    tensors = [
        FileTensor("boxes", shapes[0], name, None, *quant),
        FileTensor("scores", shapes[1], name, None, *(share if quant[0] else quant)),
        FileTensor("anchors", (BOXES, 4), name, whole, *quant),
        FileTensor("found", (1, MOST, 4)),
        *(FileTensor(n, (1, MOST)) for n in ("classes", "best")),
        FileTensor("count", (1,)),
    ]
    custom = bytes(flexbuffers.Dumps({**OPTIONS, **options}))
    operator = FileOperator(CODE, (0, 1, 2), (3, 4, 5, 6), custom=custom)
    return write(tensors, [operator], [0, 1], [3, 4, 5, 6])


def _inputs(kind: str, background: int) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    shape = (1, BOXES, CLASSES + background)
    if kind == "float32":
        # scores in steps, so that some are equal
        return {
            "boxes": rng.normal(0, 1, (1, BOXES, 4)).astype(np.float32),
            "scores": (rng.integers(0, 20, shape) / 20).astype(np.float32),
        }
    low, high = (0, 255) if kind == "uint8" else (-128, 127)
    return {
        "boxes": rng.integers(low + 90, high - 90, (1, BOXES, 4)).astype(kind),
        "scores": rng.integers(low, high, shape).astype(kind),
    }


CASES = {
    "fast": ("float32", 1, {}),
    "regular": ("float32", 0, {"use_regular_nms": True, "detections_per_class": 3}),
    "regular_uint8": ("uint8", 1, {"use_regular_nms": True}),
    "few": ("float32", 1, {"nms_score_threshold": 0.85, "nms_iou_threshold": 0.1}),
}


def test_what_litert_finds(tmp_path_factory: pytest.TempPathFactory) -> None:
    files = {n: _file(kind, back, **more) for n, (kind, back, more) in CASES.items()}
    libraries = [library_of(Case((n, "d", 0), files[n], [], None)) for n in CASES]
    root = tmp_path_factory.mktemp("detection")
    nets = compiled(libraries, root, ("c", "llvm"))
    for name, (code, (_, library)) in zip(CASES, nets, strict=True):
        kind, back, _ = CASES[name]
        inputs = _inputs(kind, back)
        (theirs,) = run_litert(files[name], [inputs])
        count = int(theirs["count"][0])
        assert count == (MOST if name != "few" else count) and count > 1
        for net in (code[1], library.host("llvm")):
            net.run(**inputs)
            assert net.get_output("count")[0] == count
            for output in ("found", "classes", "best"):
                ours = np.array(net.get_output(output))
                close = np.testing.assert_allclose
                close(ours[:, :count], theirs[output][:, :count], 1e-5, 1e-6)
                assert not ours[:, count:].any()


def test_int8_is_uint8_moved() -> None:
    """LiteRT has it in float32 and uint8."""
    inputs = _inputs("uint8", 1)
    moved = {n: (x.astype(int) - 128).astype(np.int8) for n, x in inputs.items()}
    whole, less = (load("m.tflite", _file(k, 1), {}) for k in ("uint8", "int8"))
    theirs, ours = interpret(whole, inputs), interpret(less, moved)
    for name in whole.outputs:
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"max_classes_per_detection": 2}, "max_classes_per_detection is 2. Hint: 1, "
                                           "or use_regular_nms"),
        ({"num_classes": 9},
         "[1, 24, 4], [1, 24, 4], [24, 4] and 9 classes do not fit"),
        ({"y_scale": 0.0}, "its options make no sense: _Options(classes=3, most=7, "
         "each=1, per_class=100, regular=False, score=0.25, overlap=0.5, "
         "scales=(0.0, 10.0, 5.0, 5.0))"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options: dict[str, Any], what: str) -> None:
    with pytest.raises(BuildError) as caught:
        load("m.tflite", _file("float32", 1, **options), {})
    told = str(caught.value.problems[0])
    assert told == f"m.tflite: node 'found' (CUSTOM {CODE}): {what}"


def test_damaged_options() -> None:
    data = _file("float32", 1)
    start = data.index(b"max_detections") - 20
    for place in range(start, start + 330, 7):
        damaged = bytearray(data)
        damaged[place] ^= 0xA5
        try:
            load("m.tflite", bytes(damaged), {})
        except BuildError as error:
            assert error.problems
