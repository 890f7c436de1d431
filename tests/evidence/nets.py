"""The networks whose generated C is read by cppcheck, of each kind one; those of the
table of docs/misra.md lie in the tree."""

from __future__ import annotations

from pathlib import Path

import pybuild
from pybuild.library import Library
from tests.conftest import models_folder
from tests.evidence.misra import Finding, findings

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
STREAMS = ROOT / "examples" / "streams"
IN_TREE = ("digits", "digits_float", "digits_int16", "tcn", "gru")
REAL = ("kws_m4", "kws_m55")


def build(name: str, folder: Path) -> Library:
    """A network by its name, built into the folder."""
    float32 = DIGITS / "digits_f32.onnx"
    if name in REAL:
        model = pybuild.load(models_folder() / "kws_int8.tflite")
        core = "cortex-" + name.removeprefix("kws_")
        return model.build(folder, name=name, target=core)
    if name == "digits":
        model = pybuild.load(DIGITS / "digits_int8.onnx")
        return model.build(folder, name=name, target="cortex-m4")
    if name == "digits_int16":
        samples = DIGITS / "digits_calibration.npz"
        few = pybuild.quantise(float32, samples, int16=["conv", "dense"])
        return few.build(folder, name=name)
    if name == "tcn":
        model = pybuild.load(STREAMS / "tcn.onnx")
        return model.build(folder, name=name, stream="2")
    path = STREAMS / "gru.onnx" if name == "gru" else float32
    return pybuild.load(path).build(folder, name=name)


def of_net(name: str, folder: Path) -> list[Finding]:
    """What is found in its C, and in crt's headers that this sees, with its self test.
    Its kernels are the same in each configuration of the headers."""
    build(name, folder)
    files = tuple(sorted(folder.glob(f"{name}*.c")))
    include = folder / "crt" / "include"
    return findings(folder, files, include, "-DCRT_WITH_SELFTEST")
