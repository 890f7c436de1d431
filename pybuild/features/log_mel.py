"""log_mel and mfcc: graphs from samples to features, and their numpy twins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.features.draft import NOISE_BITS, Draft
from pybuild.features.tables import (
    DCT_BITS,
    WEIGHT_BITS,
    cosines,
    gains,
    hann,
    mel_bands,
)
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.ops.interpret import interpret, next_state
from pybuild.ops.sensors.fft import MOST
from pybuild.ops.sensors.halving import LEAST

# the logarithm's unit: real = q / 64 as micro_speech has it; finer without noise
_LOG_SCALE, _FINE_SCALE = 64, 1024
_UNIT = Quant((1 / _LOG_SCALE,))
_GAIN_BITS, _SNR_BITS = 21, 12
_LOUDEST = 17.0  # logarithm
# of the logarithm of 2
_LN_BITS = 8


class Features:
    """A graph that takes `hop` new samples a run and gives one row of features.

    graph   input `samples` int16[hop], output `features`, int8 or int16 [bands]; what
            it keeps (rest of the window, noise) is state. pybuild.build(features.graph)
            compiles it
    scale   real = scale * (q - zero_point): the natural logarithm of each band
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.hop = graph.tensor("samples").size
        self.bands = graph.tensor("features").size
        quant = graph.tensor("features").quant
        assert quant is not None
        self.scale, self.zero_point = quant.scale[0], quant.zero_point[0]

    def __repr__(self) -> str:
        return f"Features({self.bands} bands, every {self.hop} samples)"

    def __call__(self, samples: Any) -> Array:
        """Rows of features of a whole recording, with the bits of the device.

        samples  int16[n], or [.., n]: recordings, each of which begins with silence
        Shapes   [.., n // hop, bands]; what is left over is dropped
        Errors   BuildError for other types
        """
        given = np.asarray(samples)
        if given.dtype != np.int16 or not given.ndim:
            what = f"samples are {given.dtype.name}{list(given.shape)}"
            raise BuildError(self.graph.name, what, "int16, the last axis is time")
        rows = given.reshape(-1, given.shape[-1])
        count = given.shape[-1] // self.hop
        kind = self.graph.tensor("features").dtype.numpy
        made = np.zeros((len(rows), count, self.bands), kind)
        for row, target in zip(rows, made, strict=True):
            state: Mapping[str, Array] | None = None
            for i in range(count):
                frame = row[i * self.hop : (i + 1) * self.hop]
                values = interpret(self.graph, {"samples": frame}, state)
                state = next_state(self.graph, values)
                target[i] = values["features"]
        return made.reshape(*given.shape[:-1], count, self.bands)


def log_mel(
    rate: int = 16000,
    window: int = 480,
    hop: int = 320,
    bands: int = 40,
    low: float = 125.0,
    high: float = 7500.0,
    *,
    subtract_noise: bool = True,
    gain: bool = True,
    scale: float | None = None,
    name: str = "log_mel",
) -> Features:
    """Features of the last `window` samples, each `hop` samples: the logarithm of mel
    bands, in integers from the first to the last step.

    rate            Hz; window, hop in samples; low, high: Hz, of the bands
    subtract_noise  what is there all the time is taken off each band
    gain            each band is divided by its noise (PCAN), so that how loud a
                    recording is matters less; needs subtract_noise
    scale           of the int8 output, whose zero point is -128; None: 10.4 / 255 with
                    gain, as micro_speech was trained, else 17 / 255: the loudest
    Errors          BuildError for numbers that make no sense, all of them at once
    """
    if scale is None:
        scale = (10.4 if gain else _LOUDEST) / 255
    wrong = wrong_numbers(rate, window, hop, bands, low, high, scale)
    refuse(name, wrong, subtract_noise, gain)
    draft = Draft(name)
    y = logarithms(
        draft, rate, window, hop, bands, low, high, subtract_noise=subtract_noise,
        gain=gain,
    )  # fmt: skip
    draft.output(y, Quant((scale,), (-128,)))
    return Features(draft.graph())


def mfcc(
    rate: int = 16000,
    window: int = 480,
    hop: int = 320,
    bands: int = 40,
    coefficients: int = 13,
    low: float = 20.0,
    high: float = 7600.0,
    *,
    subtract_noise: bool = False,
    gain: bool = False,
    name: str = "mfcc",
) -> Features:
    """The first coefficients of the cosine transform (DCT-II, orthonormal) of log_mel,
    each `hop` samples, in integers from the first to the last step.

    coefficients  the first is the sum of all logarithms, by the root of `bands`
    others        as of log_mel
    Returns       int16 rows, real = scale * q, which a net's int8 are made of
    Errors        BuildError for numbers that make no sense, all of them at once
    """
    wrong = wrong_numbers(rate, window, hop, bands, low, high, 1.0)
    if not 1 <= coefficients <= bands:
        wrong.append(f"{coefficients} coefficients, not from 1 to the bands' {bands}")
    refuse(name, wrong, subtract_noise, gain)
    draft = Draft(name)
    y = logarithms(
        draft, rate, window, hop, bands, low, high, subtract_noise=subtract_noise,
        gain=gain,
    )  # fmt: skip
    wide = draft.op("map", [y], fn="cast", to="int32")
    row = draft.shaped(wide, (1, bands))
    turned = draft.op(
        "matmul", [row, draft.constant("dct", cosines(bands, coefficients))]
    )
    assert y.quant is not None
    unit, places = y.quant.scale[0], DCT_BITS
    while _LOUDEST * math.sqrt(bands) / unit > DType.INT16.high:
        unit, places = 2 * unit, places + 1
    half = draft.constant("half of dct", np.full((1, 1), 1 << (places - 1), np.int32))
    turned = draft.op("map", [turned, half], fn="add")
    down = draft.constant("down", np.full((1, 1), places, np.int32))
    turned = draft.op("map", [turned, down], fn="shift_right")
    turned = draft.op("map", [turned], Quant((unit,)), fn="cast", to="int16")
    loudest = Quant((_LOUDEST * math.sqrt(bands) / DType.INT16.high,), (0,))
    draft.output(draft.shaped(turned, (coefficients,)), loudest, DType.INT16)
    return Features(draft.graph())


def logarithms(
    draft: Draft, rate: int, window: int, hop: int, bands: int, low: float,
    high: float, *, subtract_noise: bool, gain: bool,
) -> Tensor:  # fmt: skip
    """Adds nodes from samples to the natural logarithm of mel bands, int16."""
    length = max(LEAST, 1 << (window - 1).bit_length())
    x = draft.input("samples", (hop,))
    y = draft.framed(x, window)
    y = draft.op("window", [y, draft.constant("hann", hann(window))], shift=WEIGHT_BITS)
    y, bits = draft.ops("auto_scale", [y])
    y = draft.op("rfft", [y], length=length, inverse=False, halving=True)
    made = mel_bands(rate, length, bands, low, high)
    y = draft.op("energy", [y], start=made.first, end=made.last)
    tables = [draft.constant(n, a) for n, a in made.tables().items()]
    y = draft.op("filter_bank", [y, *tables])
    if not subtract_noise:
        return _scaled_back(draft, y, bits, _correction(length))
    y = draft.op("square_root", [y, bits])
    return gained(draft, y, length, gain)


def gained(
    draft: Draft, y: Tensor, length: int, gain: bool, unit: Quant = _UNIT
) -> Tensor:
    """The logarithm of roots less their noise, int16, with gain where wanted.

    length  of the transform
    unit    of the result: 64 is the logarithm of e
    """
    correction = _correction(length)
    y, noise = draft.quiet(y)
    if gain:
        table = gains(0.95, 80.0, _GAIN_BITS, NOISE_BITS - correction)
        shift = _GAIN_BITS - correction - _SNR_BITS
        y = draft.op(
            "pcan", [y, noise, draft.constant("gains", table)], snr_shift=shift
        )
    return _logarithm(draft, y, correction, unit)


def _correction(length: int) -> int:
    """Bits that roots are below those of the transform's whole sums."""
    return length.bit_length() - 1 - WEIGHT_BITS // 2


def _logarithm(
    draft: Draft, y: Tensor, correction: int, unit: Quant, scale: int = _LOG_SCALE
) -> Tensor:
    return draft.op(
        "filter_bank_log", [y], unit, correction_bits=max(correction, 0), scale=scale
    )


def _scaled_back(draft: Draft, y: Tensor, bits: Tensor, correction: int) -> Tensor:
    """The logarithm of the roots less that of 2^bits: no bit of a root is lost; not
    below 0, which is what a root of 1 without bits has.
    """
    none = draft.constant("no bits", np.zeros((), np.int32))
    roots = draft.op("square_root", [y, none])
    y = _logarithm(draft, roots, correction, Quant((1 / _FINE_SCALE,)), _FINE_SCALE)
    each = round(_FINE_SCALE * math.log(2) * (1 << _LN_BITS))
    scaled = bits
    for name, value, fn in (
        ("ln 2", each, "multiply"),
        ("half", 1 << (_LN_BITS - 1), "add"),
        ("places of ln 2", _LN_BITS, "shift_right"),
    ):
        by = draft.constant(name, np.asarray(value, np.int32))
        scaled = draft.op("map", [scaled, by], fn=fn)
    less = draft.op("map", [scaled], fn="cast", to="int16")
    y = draft.op("map", [y, less], y.quant, fn="subtract")
    zero = draft.constant("silence", np.zeros((), np.int16))
    return draft.op("map", [y, zero], y.quant, fn="maximum")


def refuse(name: str, wrong: list[str], subtract_noise: bool, gain: bool) -> None:
    """Refuses arguments that are wrong.

    Errors  BuildError for what is wrong
    """
    if gain and not subtract_noise:
        wrong = [*wrong, "gain needs subtract_noise"]
    if wrong:
        raise BuildError(name, "; ".join(wrong))


def wrong_numbers(
    rate: int, window: int, hop: int, bands: int, low: float, high: float, scale: float
) -> list[str]:
    """The problems of the arguments."""
    found = []
    if not 16 <= window <= MOST:
        found.append(f"window is {window} samples, not from 16 to {MOST}")
    if not 0 < hop <= window:
        found.append(f"hop is {hop} samples, not from 1 to the window's {window}")
    if not 0 <= low < high <= rate / 2:
        found.append(f"bands from {low} to {high} Hz, at a rate of {rate}")
    if not 1 <= bands <= 256:
        found.append(f"{bands} bands, not from 1 to 256")
    if not (scale > 0 and math.isfinite(scale)):
        found.append(f"scale is {scale}")
    return found
