"""Small streaming nets with the ends of micro wake word's, from a seed, and their
manifests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.ops.tflite_writer import FileOperator, FileTensor, write

ROWS, BANDS, HIDDEN = 3, 40, 8
KEPT = 2  # rows of earlier steps
_IN, _MIDDLE, _OUT = (26 / 255, -128), (0.2, -128), (0.1, 0)


def streaming_net(seed: int, rows: int = ROWS) -> bytes:
    """A .tflite: a convolution over its rows and two before, a dense layer, a
    probability; what it keeps is a variable."""
    rng, taps = np.random.default_rng(seed), rows + KEPT
    given, quant = (1, rows, 1, BANDS), dict(scale=(_IN[0],), zero_point=(_IN[1],))
    tensors: list[FileTensor] = []

    def tensor(
        name: str, shape: tuple[int, ...], kind: str = "INT8", **more: Any
    ) -> int:
        tensors.append(FileTensor(name, shape, kind, **more))
        return len(tensors) - 1

    def scaled(scale: float, zero: int = 0) -> dict[str, Any]:
        return {"scale": (scale,), "zero_point": (zero,)}

    def numbers(name: str, values: Any) -> int:
        data = np.asarray(values, np.int32)
        return tensor(name, data.shape, "INT32", data=data)

    kernel = rng.integers(-127, 128, (HIDDEN, taps, 1, BANDS)).astype(np.int8)
    dense = rng.integers(-127, 128, (1, HIDDEN)).astype(np.int8)
    x = tensor("x", (1, rows, BANDS), **quant)
    shaped = tensor("shaped", given, **quant)
    handle = tensor("kept", (), "RESOURCE")
    before = tensor("before", (1, KEPT, 1, BANDS), **quant)
    window = tensor("window", (1, taps, 1, BANDS), **quant)
    after = tensor("after", (1, KEPT, 1, BANDS), **quant)
    w = tensor("w", kernel.shape, data=kernel, **scaled(0.004))
    b = tensor("b", (HIDDEN,), "INT32", data=np.zeros(HIDDEN, np.int32),
               **scaled(0.004 * _IN[0]))  # fmt: skip
    hidden = tensor("hidden", (1, 1, 1, HIDDEN), **scaled(*_MIDDLE))
    flat = tensor("flat", (1, HIDDEN), **scaled(*_MIDDLE))
    wd = tensor("wd", dense.shape, data=dense, **scaled(0.01))
    bd = tensor("bd", (1,), "INT32", data=np.zeros(1, np.int32),
                **scaled(0.01 * _MIDDLE[0]))  # fmt: skip
    logit = tensor("logit", (1, 1), **scaled(*_OUT))
    chance = tensor("chance", (1, 1), **scaled(1 / 256, -128))
    y = tensor("y", (1, 1), "UINT8", **scaled(1 / 256, 0))
    begin, end = numbers("begin", (0, rows, 0, 0)), numbers("end", (1, taps, 1, BANDS))
    ones, to4 = numbers("ones", (1, 1, 1, 1)), numbers("to4", given)
    to2 = numbers("to2", (1, HIDDEN))
    shared = {"Container": "", "SharedName": "kept"}
    operators = [
        FileOperator("VAR_HANDLE", (), (handle,), "VarHandleOptions", shared),
        FileOperator("READ_VARIABLE", (handle,), (before,), "ReadVariableOptions"),
        FileOperator("RESHAPE", (x, to4), (shaped,), "ReshapeOptions",
                     {"NewShape": given}),
        FileOperator("CONCATENATION", (before, shaped), (window,),
                     "ConcatenationOptions", {"Axis": 1}),
        FileOperator("STRIDED_SLICE", (window, begin, end, ones), (after,),
                     "StridedSliceOptions", {}),
        FileOperator("ASSIGN_VARIABLE", (handle, after), (), "AssignVariableOptions"),
        FileOperator("CONV_2D", (window, w, b), (hidden,), "Conv2DOptions",
                     {"Padding": 1, "StrideH": 1, "StrideW": 1,
                      "DilationHFactor": 1, "DilationWFactor": 1,
                      "FusedActivationFunction": 1}),
        FileOperator("RESHAPE", (hidden, to2), (flat,), "ReshapeOptions",
                     {"NewShape": (1, HIDDEN)}),
        FileOperator("FULLY_CONNECTED", (flat, wd, bd), (logit,),
                     "FullyConnectedOptions", {}),
        FileOperator("LOGISTIC", (logit,), (chance,)),
        FileOperator("QUANTIZE", (chance,), (y,), "QuantizeOptions", {}),
    ]  # fmt: skip
    zero = np.full((1, KEPT, 1, BANDS), _IN[1], np.int8)
    first = FileTensor("v", zero.shape, "INT8", zero, *((v,) for v in _IN))
    inside = [FileTensor("h", (), "RESOURCE"), first]
    calls = [
        FileOperator("VAR_HANDLE", (), (0,), "VarHandleOptions", shared),
        FileOperator("ASSIGN_VARIABLE", (0, 1), (), "AssignVariableOptions"),
    ]
    once = FileOperator(
        "CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}
    )
    return write(tensors, [once, *operators], [x], [y], called=[(inside, calls)])


def manifest(phrase: str, cutoff: float, window: int, **more: Any) -> dict[str, Any]:
    """What the .json beside a net says."""
    micro = {
        "probability_cutoff": cutoff, "sliding_window_size": window,
        "feature_step_size": 10, "tensor_arena_size": 9999,
        "minimum_esphome_version": "2024.7.0", **more,
    }  # fmt: skip
    return {
        "type": "micro", "version": 2, "wake_word": phrase, "author": "nobody",
        "trained_languages": ["en"], "model": "net.tflite", "micro": micro,
    }  # fmt: skip


# name -> seed, phrase, cutoff, window: the seeds are of nets that hear something
NETS: dict[str, tuple[int, str, float, int]] = {
    "hello": (1, "Hello, \"you\"", 0.6, 5),
    "stop": (2, "Stopp\u00e9", 0.5, 3),
    "voice": (3, "vad", 0.3, 5),
}  # fmt: skip


def write_nets(folder: Path, names: tuple[str, ...] = tuple(NETS)) -> dict[str, Path]:
    """The files of nets and manifests in a folder; name -> .tflite."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in names:
        seed, *said = NETS[name]
        found[name] = folder / f"{name}.tflite"
        found[name].write_bytes(streaming_net(seed))
        text = json.dumps(manifest(*said))  # type: ignore[arg-type]
        found[name].with_suffix(".json").write_text(text)
    return found
