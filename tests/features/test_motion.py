"""Features of accelerometers: near float64, and the same bits on a device, pushed in
pieces of any size.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.features import Features, motion
from tests.features.nets import dense_net
from tests.toolchains import require

RATE, WINDOW, HOP, AXES, BANDS = 100.0, 64, 32, 3, 4
OPTIONS: dict[str, Any] = {"rate": RATE, "window": WINDOW, "hop": HOP, "bands": BANDS}


def shaken(readings: int, seed: int = 0, loud: float = 4000.0) -> Array:
    """Weight, and tones of each axis: int16[readings, AXES]."""
    rng, t = np.random.default_rng(seed), np.arange(readings)[:, None] / RATE
    tones = np.sin(2 * np.pi * t * np.array([3.0, 11.0, 31.0]) + t**2)
    made = tones * loud + rng.normal(0, loud / 30, (readings, AXES)) + (0, -4096, 9000)
    return np.clip(np.round(made), -32768, 32767).astype(np.int16)


def real(readings: Array) -> Array:
    """The same in float64: [rows, AXES, 2 + BANDS]."""
    padded = np.concatenate([np.zeros((WINDOW - HOP, AXES)), readings])
    window = 0.5 - 0.5 * np.cos((np.arange(WINDOW) + 0.5) * 2 * np.pi / WINDOW)
    rows, bins = [], np.arange(WINDOW // 2 + 1) * RATE / WINDOW
    edges = np.linspace(1, RATE / 2, BANDS + 1)
    for at in range(0, len(padded) - WINDOW + 1, HOP):
        part = padded[at : at + WINDOW].T
        mean, deviation = part.mean(1), part.std(1)
        turned = np.fft.rfft((part - mean[:, None]) * window) / WINDOW
        power = np.abs(turned) ** 2 * 2 / 0.375
        inside = [
            (low <= bins) & ((bins < high) | (high == edges[-1]))
            for low, high in itertools.pairwise(edges)
        ]
        strong = [np.sqrt(power[:, one].sum(1)) for one in inside]
        rows.append(np.stack([mean, deviation, *strong], 1))
    return np.asarray(rows)


def features(**options: Any) -> Features:
    return motion(**{**OPTIONS, **options})


def test_integers_are_near_real_numbers() -> None:
    """Half a step of the mean and the deviation; of what is within a hundredth of the
    loudest, 0.15 dB, and half a step."""
    for loud in (300.0, 4000.0, 20000.0):
        readings = shaken(1600, loud=loud)
        made = features()(readings.reshape(-1)).reshape(-1, AXES, 2 + BANDS)
        wanted = real(readings)
        assert np.abs(made[..., :2] - wanted[..., :2]).max() <= 0.51
        ours, theirs = made[..., 2:].astype(float), wanted[..., 2:]
        if loud < 1000:  # rounded, not cut off
            assert abs((ours - theirs).mean()) < 0.2
        strong = theirs > theirs.max() / 100
        apart = np.abs(ours - theirs)[strong] - 0.5
        decibels = 20 * np.log10(1 + np.maximum(apart, 0) / theirs[strong])
        assert strong.sum() > 150 and decibels.max() < 0.15


def test_pieces_of_any_size_have_the_bits_of_numpy() -> None:
    readings = shaken(480, 1).reshape(-1)
    rows = features()(readings)
    for backend in ("llvm", "c"):
        net = pybuild.build(features().graph, name="shaken").host(backend)
        at = done = 0
        for count in [1, 7, 50, 96, 95, 500, 1000]:
            runs = net.push_samples(readings[at : at + count])
            at, done = at + count, done + runs
            if runs:
                np.testing.assert_array_equal(
                    net.get_output("features"), rows[done - 1]
                )
        assert done == len(rows) == len(readings) // (HOP * AXES)


def test_bits_of_numpy_on_a_board_before_a_net() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    row = AXES * (2 + BANDS)
    chain = pybuild.chain(
        features(scale=17 / 8192 / 4), dense_net((1, row), scale=17 / 127, zero=0)
    )
    readings = shaken(4 * HOP, 2).reshape(-1)
    given = [{"samples": one} for one in readings.reshape(4, -1)]
    device = open_device("mps2-an386", "auto", "auto", "cortex-m4")
    library = pybuild.build(chain, name="shaken", target="cortex-m4")
    made, twin = (
        run_program(device, program_of(device, library), given),
        chain(readings),
    )
    found = np.stack([one["scores"] for one in made])
    np.testing.assert_array_equal(found, twin["scores"])
    assert len(np.unique(found)) > 3


@pytest.mark.parametrize("full", [-32768, 32767])
def test_what_is_as_loud_as_can_be(full: int) -> None:
    """Nothing wraps: rectangles from end to end, and one end alone."""
    readings = np.full((WINDOW * 2, AXES), full, np.int16)
    readings[::2, 1], readings[::2, 2] = -full - 1, 0
    made = features()(readings.reshape(-1)).reshape(-1, AXES, 2 + BANDS)
    wanted = np.clip(real(readings), -32768, 32767)
    assert np.abs(made[..., :2] - wanted[..., :2]).max() <= 0.51
    net = pybuild.build(features().graph).host()
    net.push_samples(readings.reshape(-1))
    np.testing.assert_array_equal(net.get_output("features"), made[-1].reshape(-1))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"window": 100}, "window is 100, no power of two"),
        ({"hop": 65}, "hop is 65 readings"),
        ({"axes": 0}, "0 axes, not from 1 to 16"),
        ({"low": 60.0}, "bands from 60.0 to 50.0 Hz"),
        ({"bands": 40}, "40 bands: each is to have 1.562 Hz"),
        ({"scale": 0.0, "axes": 99}, "99 axes, not from 1 to 16; scale is 0.0"),
    ],
)
def test_what_makes_no_sense_is_told(options: dict[str, Any], what: str) -> None:
    with pytest.raises(BuildError, match=what):
        features(**options)
