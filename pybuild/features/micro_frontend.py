"""micro_frontend: what micro_speech and micro wake word were trained on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.features.draft import Draft
from pybuild.features.log_mel import Features, gained, refuse, wrong_numbers
from pybuild.features.tables import WEIGHT_BITS, Bands
from pybuild.ir.graph import Quant, Tensor
from pybuild.ops.sensors.halving import LEAST

# of the input of a net that was trained on numbers from 0 to 26, as files have it
_SCALE = float(np.float32(26 / 255))
# an integer of the microfrontend in steps of that input, as its users have it
_STEPS = 256 / 666
_REAL = np.float32
_HALF = _REAL(0.5)


def micro_frontend(
    rate: int = 16000,
    window: int = 480,
    hop: int = 160,
    bands: int = 40,
    low: float = 125.0,
    high: float = 7500.0,
    *,
    gain: bool = True,
    name: str = "micro_frontend",
) -> Features:
    """Features with every integer of TensorFlow's microfrontend, which the networks of
    micro_speech (hop 320) and of micro wake word (hop 160) were trained on.

    others   as of log_mel
    Returns  int8 rows, q = (integer * 256 + 333) // 666 - 128, which are the input of
             those networks as they are; scale is theirs: 26 / 255. Until the window is
             full, rows are -128
    Errors   BuildError for numbers that make no sense, all of them at once
    """
    wrong = wrong_numbers(rate, window, hop, bands, low, high, 1.0)
    refuse(name, wrong, subtract_noise=True, gain=gain)
    draft, length = Draft(name), max(LEAST, 1 << (window - 1).bit_length())
    x = draft.input("samples", (hop,))
    runs = -(-window // hop)
    y = draft.framed(x, runs * hop)
    if runs * hop > window:  # windows begin with the first sample
        y = draft.op("slice", [y], begin=(0,), end=(window,), strides=(1,))
    hann = draft.constant("hann", _hann(window))
    y = draft.op("window", [y, hann], shift=WEIGHT_BITS)
    y, bits = draft.ops("auto_scale", [y])
    y = draft.op("rfft", [y], length=length, inverse=False)
    made = micro_bands(rate, length, bands, low, high)
    y = draft.op("energy", [y], start=made.first, end=made.last)
    tables = [draft.constant(n, a) for n, a in made.tables().items()]
    y = draft.op("filter_bank", [y, *tables])
    y = _once_full(draft, draft.op("square_root", [y, bits]), runs)
    y = gained(draft, y, length, gain, Quant((_SCALE * _STEPS,)))
    draft.output(y, Quant((_SCALE,), (-128,)), rounding="single")
    return Features(draft.graph())


def _once_full(draft: Draft, y: Tensor, runs: int) -> Tensor:
    """y from the run on that fills the window; zeros before, of which no noise is
    learnt.
    """
    if runs == 1:
        return y
    one = draft.constant("one", np.ones(1, np.uint32))
    row = draft.framed(one, runs, "full")
    full = draft.op("slice", [row], begin=(0,), end=(1,), strides=(1,))
    return draft.op("map", [y, full], fn="multiply")


def _hann(size: int) -> Array:
    """Same as tables.hann, in float32; the cosine is not, because its last bit depends
    on the machine."""
    arg = _REAL(np.pi) * 2 / _REAL(size)
    angles = arg * (np.arange(size).astype(_REAL) + _HALF)
    return _whole(_HALF - _HALF * np.cos(angles.astype(np.float64)).astype(_REAL))


def _whole(real: npt.NDArray[np.float32], half: np.float32 = _HALF) -> Array:
    """Integers in 2^-12: the nearest, or with half 0 those below."""
    whole: Array = np.floor(real * _REAL(1 << WEIGHT_BITS) + half).astype(np.int16)
    return whole


def _mel(hertz: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    mel: npt.NDArray[np.float32] = _REAL(1127) * _log1p(hertz / _REAL(700))
    return mel


def _log1p(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Rounded once: the nearest float32, on every machine."""
    return np.log1p(x.astype(np.float64)).astype(_REAL)


def micro_bands(
    rate: int, length: int, bands: int, low: float, high: float,
    half: np.float32 = _HALF,
) -> Bands:  # fmt: skip
    """The triangles of the microfrontend, in float32 as there: from the frequency after
    `low`, each frequency with the first band whose middle is not below it.

    half  0: weights are cut, as the Python of TensorFlow Lite Micro does
    """
    ends = _mel(np.asarray([low, high], _REAL))
    steps = np.arange(1, bands + 2).astype(_REAL)
    middles = ends[0] + (ends[1] - ends[0]) / _REAL(bands + 1) * steps
    befores = np.append(ends[:1], middles[:-1])
    apart = _HALF * _REAL(rate) / _REAL(length // 2)
    places_of = _mel(np.arange(length // 2 + 1).astype(_REAL) * apart)
    first = int(_REAL(1.5) + _REAL(low) / apart)
    after = np.maximum(np.searchsorted(places_of, middles, "right"), first)
    starts = np.append([first], after[:-1])
    widths = after - starts
    shares = np.concatenate(
        [
            (middle - places_of[start:end]) / (middle - before)
            for middle, before, start, end in zip(
                middles, befores, starts, after, strict=True
            )
        ]
    )
    weights, unweights = _whole(shares, half), _whole(_REAL(1) - shares, half)
    rows = (starts * (widths > 0), np.cumsum(widths) - widths, widths)
    starts, places, widths = (row.astype(np.int16) for row in rows)
    return Bands(weights, unweights, starts, places, widths, first, int(after[-1]))
