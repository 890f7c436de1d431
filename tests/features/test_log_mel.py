"""pybuild.features.log_mel: numpy, C and LLVM give one row each hop, with the same
bits; how far integers are from real numbers; what makes no sense is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.features import Features, log_mel, mfcc
from pybuild.features.tables import WEIGHT_BITS, hann, mel_bands

FORMS: dict[str, dict[str, Any]] = {
    "micro_speech": {},
    "plain": {"subtract_noise": False, "gain": False},
    "quiet": {"gain": False, "bands": 20, "hop": 480},
    "slow": {"rate": 8000, "window": 256, "hop": 100, "bands": 13, "high": 3800.0},
}


def sound(rate: int, seconds: float = 1.0, seed: int = 0) -> Array:
    """A chirp that grows, and noise."""
    rng, t = np.random.default_rng(seed), np.arange(int(rate * seconds)) / rate
    chirp = 9000 * t * np.sin(2 * np.pi * (200 + 900 * t) * t)
    made = chirp + rng.normal(0, 200, len(t))
    return np.clip(made, -32768, 32767).astype(np.int16)


CEPSTRA: dict[str, dict[str, Any]] = {
    "mfcc": {},
    "mfcc_quiet": {"subtract_noise": True, "gain": True, "coefficients": 20},
}


@pytest.fixture(scope="module", params=[*FORMS, *CEPSTRA])
def form(request: pytest.FixtureRequest) -> tuple[Features, int]:
    name = request.param
    if name in CEPSTRA:
        return mfcc(name=name, **CEPSTRA[name]), 16000
    return log_mel(name=name, **FORMS[name]), FORMS[name].get("rate", 16000)


@pytest.mark.parametrize("backend", ["c", "llvm"])
def test_a_device_has_the_bits_of_training(
    form: tuple[Features, int], backend: str
) -> None:
    features, rate = form
    pcm = sound(rate)
    wanted = features(pcm)
    assert wanted.shape == (len(pcm) // features.hop, features.bands)
    assert len(np.unique(wanted)) > 50
    net = pybuild.build(features.graph).host(backend)
    for i, row in enumerate(wanted):
        net.run(samples=pcm[i * features.hop : (i + 1) * features.hop])
        np.testing.assert_array_equal(net.get_output("features"), row)


def test_recordings_at_once_are_those_one_by_one() -> None:
    features = log_mel()
    both = np.stack([sound(16000, 0.2, seed) for seed in (1, 2)])
    np.testing.assert_array_equal(features(both)[1], features(both[1]))
    assert features(both).shape == (2, 10, 40)


def _real(
    pcm: Array,
    window: int,
    hop: int,
    bands: int,
    low: float = 125.0,
    high: float = 7500.0,
) -> Array:
    """The same in float64, without noise or gain; natural logarithms."""
    length = 1 << (window - 1).bit_length()
    made = mel_bands(16000, length, bands, low, high)
    padded = np.append(np.zeros(window - hop), pcm)
    rows = []
    for at in range(0, len(pcm) - hop + 1, hop):
        frame = padded[at : at + window] * hann(window) / (1 << WEIGHT_BITS)
        power = np.abs(np.fft.rfft(frame, length) / length) ** 2
        left, row = 0.0, []
        for start, place, width in zip(
            made.starts, made.places, made.widths, strict=True
        ):
            part, w = power[start : start + width], made.weights[place : place + width]
            row.append(left + (part * w).sum())
            left = (part * ((1 << WEIGHT_BITS) - w)).sum()
        rows.append(row[1:])
    return np.log(np.maximum(np.sqrt(np.asarray(rows)) * (length >> 6), 1))


def test_integers_are_within_half_a_decibel_of_real_numbers() -> None:
    """Of what is louder than a hundredth of the loudest."""
    features = log_mel(subtract_noise=False, gain=False)
    pcm = sound(16000)
    real = _real(pcm, 480, 320, 40)
    ours = (features(pcm).astype(float) - features.zero_point) * features.scale
    loud = real > real.max() - np.log(100)
    decibels = 20 / np.log(10) * np.abs(ours - real)[loud]
    assert loud.sum() > 150 and np.median(decibels) < 0.2 and decibels.max() < 0.5


def test_cosines_of_integers_are_near_those_of_real_numbers() -> None:
    """Of rows whose bands are all loud enough to be told from silence."""
    rng, features = np.random.default_rng(4), mfcc()
    pcm = rng.normal(0, 3000, 16000).astype(np.int16)
    logs = _real(pcm, 480, 320, 40, 20.0, 7600.0)
    angles = np.pi * np.arange(13) * (np.arange(40)[:, None] + 0.5) / 40
    table = np.sqrt(2 / 40) * np.cos(angles) * np.where(np.arange(13), 1, 0.5**0.5)
    real, rows = logs @ table, features(pcm)
    assert rows.dtype == np.int16 and features.bands == 13
    decibels = 20 / np.log(10) * np.abs(rows * features.scale - real)[2:]
    assert np.median(decibels) < 0.1 and decibels.max() < 0.4


def test_how_loud_it_is_matters_less_with_gain() -> None:
    pcm = sound(16000) // 8
    apart = {}
    for gain in (False, True):
        features = log_mel(gain=gain)
        soft, loud = (features(x)[20:] * features.scale for x in (pcm, pcm * 6))
        apart[gain] = float(np.abs(loud - soft).mean())
    assert apart[True] < 0.5 * apart[False]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"window": 8}, "window is 8 samples, not from 16 to 4096"),
        ({"hop": 481}, "hop is 481 samples, not from 1 to the window's 480"),
        ({"low": 500.0, "high": 400.0, "bands": 0}, "0 bands, not from 1 to 256"),
        ({"rate": 8000}, "bands from 125.0 to 7500.0 Hz, at a rate of 8000"),
        ({"subtract_noise": False}, "gain needs subtract_noise"),
        ({"scale": float("nan")}, "scale is nan"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(BuildError, match=what):
        log_mel(**options)


def test_samples_of_another_type_are_refused() -> None:
    with pytest.raises(BuildError, match=r"samples are float64\[10\]"):
        log_mel()(np.zeros(10))


def test_more_coefficients_than_bands_are_refused() -> None:
    with pytest.raises(
        BuildError, match="41 coefficients, not from 1 to the bands' 40"
    ):
        mfcc(coefficients=41)
