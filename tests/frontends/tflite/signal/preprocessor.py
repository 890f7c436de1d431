"""The preprocessor of TensorFlow Lite Micro's micro_speech: 30 ms of samples to 40
bands, with the operators, parameters and shapes that audio_preprocessor.py gives it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from pybuild.features.micro_frontend import micro_bands
from pybuild.features.tables import Bands, gains, hann
from tests.frontends.tflite.signal.files import Signal
from tests.ops.tflite_writer import FileOperator, FileTensor, write

RATE, SAMPLES, LENGTH, BANDS = 16000, 480, 512, 40
LOWEST, HIGHEST, FRAMES = 125.0, 7500.0, 8


class _File:
    """Tensors by name, operators in order."""

    def __init__(self) -> None:
        self.tensors: list[FileTensor] = []
        self.operators: list[FileOperator] = []

    def tensor(self, name: str, shape: Any, kind: str, data: Any = None) -> int:
        if data is not None:
            data = np.asarray(data, kind.lower())
        self.tensors.append(FileTensor(name, tuple(shape), kind, data))
        return len(self.tensors) - 1

    def op(
        self, code: str, reads: list[int], name: str, shape: Any, kind: str,
        options: Any = None, table: str = "", more: tuple[int, ...] = (),
    ) -> int:  # fmt: skip
        y = self.tensor(name, shape, kind)
        outputs = (y, *more)
        if code.startswith("Signal"):
            custom = bytes(flexbuffers.Dumps(options or {}))
            made = FileOperator(code, tuple(reads), outputs, custom=custom)
        else:
            made = FileOperator(code, tuple(reads), outputs, table, options or {})
        self.operators.append(made)
        return y


def _in_blocks(made: Bands) -> Bands:
    """Each band from an even frequency on, in blocks of four, with zeros about it."""
    weights: list[int] = []
    unweights: list[int] = []
    starts, places, widths = [], [], []
    for start, place, width in zip(made.starts, made.places, made.widths, strict=True):
        before = int(start) % 2
        after = -(before + int(width)) % 4
        starts.append(int(start) - before)
        places.append(len(weights))
        widths.append(before + int(width) + after)
        for row, given in ((weights, made.weights), (unweights, made.unweights)):
            part = given[place : place + width].tolist()
            row += [0] * before + part + [0] * after
    rows = (weights, unweights, starts, places, widths)
    return Bands(*(np.asarray(row, np.int16) for row in rows), made.first, made.last)


def preprocessor(kind: str) -> Signal:
    """kind  of its output: int8 or float"""
    f, bands, bins = _File(), (BANDS,), LENGTH // 2 + 1
    x = f.tensor("audio", (1, SAMPLES), "INT16")
    weights = f.tensor("hann", (SAMPLES,), "INT16", hann(SAMPLES))
    y = f.op(
        "SignalWindow", [x, weights], "windowed", (1, SAMPLES), "INT16", {"shift": 12}
    )
    flat = f.tensor("flat", (1,), "INT32", [-1])
    y = f.op("RESHAPE", [y, flat], "row", (SAMPLES,), "INT16")
    bits = f.tensor("bits", (), "INT32")
    y = f.op("SignalFftAutoScale", [y], "scaled", (SAMPLES,), "INT16", more=(bits,))
    options = {"T": 7, "fft_length": LENGTH}
    y = f.op("SignalRfft", [y], "spectrum", (LENGTH + 2,), "INT16", options)
    made = _in_blocks(micro_bands(RATE, LENGTH, BANDS, LOWEST, HIGHEST, np.float32(0)))
    first, last = made.first, made.last
    options = {"start_index": first, "end_index": last}
    y = f.op("SignalEnergy", [y], "energy", (bins,), "UINT32", options)
    y = f.op("CAST", [y], "whole", (bins,), "INT32")
    ends = [
        f.tensor(f"at{i}", (1,), "INT32", [n]) for i, n in enumerate((first, last, 1))
    ]
    y = f.op(
        "STRIDED_SLICE", [y, *ends], "middle", (last - first,), "INT32",
        {}, "StridedSliceOptions",
    )  # fmt: skip
    head, tail = (
        f.tensor(f"zeros{i}", (n,), "INT32", np.zeros(n))
        for i, n in enumerate((first, bins - last))
    )
    y = f.op(
        "CONCATENATION",
        [head, y, tail],
        "padded",
        (bins,),
        "INT32",
        {},
        "ConcatenationOptions",
    )
    y = f.op("CAST", [y], "energies", (bins,), "UINT32")
    rows = [f.tensor(n, a.shape, "INT16", a) for n, a in made.tables().items()]
    y = f.op(
        "SignalFilterBank", [y, *rows], "bank", bands, "UINT64", {"num_channels": BANDS}
    )
    y = f.op("SignalFilterBankSquareRoot", [y, bits], "roots", bands, "UINT32")
    noise = f.tensor("noise", bands, "UINT32")
    options = {
        "alternate_one_minus_smoothing": 15401, "alternate_smoothing": 983,
        "clamping": False, "min_signal_remaining": 819, "num_channels": BANDS,
        "one_minus_smoothing": 15975, "smoothing": 409, "smoothing_bits": 10,
        "spectral_subtraction_bits": 14,
    }  # fmt: skip
    y = f.op(
        "SignalFilterBankSpectralSubtraction",
        [y],
        "quiet",
        bands,
        "UINT32",
        options,
        more=(noise,),
    )
    table = f.tensor("gains", (125,), "INT16", gains(0.95, 80.0, 21, 7))
    y = f.op(
        "SignalPCAN", [y, noise, table], "gained", bands, "UINT32", {"snr_shift": 6}
    )
    options = {"input_correction_bits": 3, "output_scale": 64}
    y = f.op("SignalFilterBankLog", [y], "log", bands, "INT16", options)
    y = _ended(f, y, kind)
    rng = np.random.default_rng(3)
    loud = rng.uniform(0, 4.5, FRAMES)
    noises = rng.normal(0, 1, (FRAMES, 1, SAMPLES)) * 10 ** loud[:, None, None]
    tone = 9000 * np.sin(np.arange(SAMPLES) * 0.4)
    frames = np.clip(noises + tone, -32768, 32767).astype(np.int16)
    frames[0] = 0
    return Signal(write(f.tensors, f.operators, [x], [y]), [[x] for x in frames], 1)


def _ended(f: _File, y: int, kind: str) -> int:
    """As the net was trained: (log * 256 + 333) / 666 - 128, held within int8."""
    bands = (BANDS,)
    if kind == "float":
        y = f.op("CAST", [y], "real", bands, "FLOAT32")
        by = f.tensor("by", (), "FLOAT32", 25.6)
        return f.op("DIV", [y, by], "features", bands, "FLOAT32", {}, "DivOptions")
    y = f.op("CAST", [y], "log32", bands, "INT32")
    for code, name, number, table in (
        ("MUL", "scaled", 256, "MulOptions"), ("ADD", "half", 333, "AddOptions"),
        ("DIV", "divided", 666, "DivOptions"), ("ADD", "moved", -128, "AddOptions"),
        ("MINIMUM", "below", 127, ""), ("MAXIMUM", "above", -128, ""),
    ):  # fmt: skip
        by = f.tensor(f"by_{name}", (), "INT32", number)
        y = f.op(code, [y, by], f"{name}_", bands, "INT32", {}, table)
    return f.op("CAST", [y], "features", bands, "INT8")
