"""A TCN and a GRU behind features: each run computes the new frames alone, with the
bits of the whole window, or of all steps at once.
"""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.library import Library
from tests.features.nets import BANDS, HOP, features, sound
from tests.features.time_nets import (
    gru,
    kept_gru,
    quantised_gru,
    real_rows,
    tcn,
    windows,
)

WIDE, DILATIONS, HIDDEN = 12, (1, 2, 4), 8
ROWS, TCN = 1 + 2 * sum(DILATIONS), tcn(BANDS, WIDE, DILATIONS, 17 / 255)
PCM = sound(HOP * 30, 5)


def _macs(library: Library) -> int:
    return sum(row.macs for row in library.report.layers)


def _of_new_frames(frames: int) -> int:
    """Multiplications that so many frames add, and the dense layer of the last one."""
    convolutions = 3 * (BANDS * WIDE + (len(DILATIONS) - 1) * WIDE * WIDE)
    return frames * convolutions + WIDE * 3


@pytest.mark.parametrize(("frames", "backend"), [(1, "c"), (1, "llvm"), (4, "llvm")])
def test_frames_of_a_tcn_are_its_windows(frames: int, backend: str) -> None:
    rows = features()(PCM).reshape(-1, 1, BANDS)
    whole = pybuild.build(TCN).host("llvm")
    stream = pybuild.build(TCN, stream=[f"1:{frames}"])
    most = _of_new_frames(frames)  # of several, not all reach the last row
    assert _macs(stream) == most if frames == 1 else 0 < _macs(stream) < most
    net, compared, found = stream.host(backend), 0, set()
    for end in range(frames, len(rows) + 1, frames):
        net.run(x=rows[None, end - frames : end])
        if end >= ROWS:
            whole.run(x=rows[None, end - ROWS : end])
            have = net.get_output("scores")
            np.testing.assert_array_equal(have, whole.get_output("scores"))
            compared, found = compared + 1, found | {have.tobytes()}
    assert compared >= 4 and len(found) >= 3


def test_a_tcn_of_samples_is_its_windows() -> None:
    """Pushed in pieces, as a microphone gives them."""
    chain = pybuild.chain(features(), TCN, stream=True)
    net, whole = pybuild.build(chain).host("llvm"), pybuild.build(TCN).host("llvm")
    told = chain(PCM)["scores"]
    for i, window in enumerate(windows(features()(PCM), ROWS), ROWS - 1):
        whole.run(x=window.reshape(1, ROWS, 1, BANDS))
        np.testing.assert_array_equal(told[i], whole.get_output("scores"))
    for at in range(0, len(PCM), 100):  # of 80 samples, so one run or two
        net.push_samples(PCM[at : at + 100])
        runs = min(at + 100, len(PCM)) // HOP
        np.testing.assert_array_equal(net.get_output("scores"), told[runs - 1])


def test_steps_of_a_gru_are_all_steps_at_once() -> None:
    """In float32: the same bits, and the cost of one step."""
    rows, net = real_rows(features(), PCM), kept_gru(BANDS, HIDDEN)
    single = pybuild.build(net)
    assert _macs(single) == 3 * HIDDEN * (BANDS + HIDDEN) + HIDDEN * 3
    step = single.host("c")
    for row in rows:
        step.run(x=row.reshape(1, 1, BANDS))
    whole = pybuild.build(pybuild.load(gru(len(rows), BANDS, HIDDEN))).host("llvm")
    whole.run(x=rows[:, None], h=np.zeros((1, 1, HIDDEN), np.float32))
    for have in (step.get_output("scores"), _pushed(net)):
        np.testing.assert_array_equal(have, whole.get_output("scores"))
    np.testing.assert_array_equal(step.kept()["h"], whole.get_output("h_next"))


def _pushed(net: pybuild.Model) -> object:
    """The last scores behind features, of samples in pieces."""
    chain = pybuild.build(pybuild.chain(features(), net)).host("llvm")
    assert (
        sum(chain.push_samples(PCM[at : at + 300]) for at in range(0, 2400, 300)) == 30
    )
    return chain.get_output("scores")


def test_a_quantised_gru_goes_on() -> None:
    """In int8: its steps have the bits of the twin, behind features, too."""
    chain = pybuild.chain(features(), quantised_gru(BANDS, HIDDEN))
    library, told = pybuild.build(chain), chain(PCM)["scores"]
    net = library.host("c")
    for i in range(len(told)):
        assert net.push_samples(PCM[i * HOP : (i + 1) * HOP]) == 1
        np.testing.assert_array_equal(net.get_output("scores"), told[i])
    assert len({row.tobytes() for row in told}) > 5


@pytest.mark.parametrize("backend", ["c", "llvm"])
def test_what_is_kept_has_the_integers_of_the_input(backend: str) -> None:
    """Of a GRU whose ends are int8, each with a scale of its own."""
    rng = np.random.default_rng(0)
    data = {
        "x": rng.uniform(0, 10, (40, 1, 1, BANDS)).astype(np.float32),
        "h": rng.uniform(-0.9, 1, (40, 1, 1, HIDDEN)).astype(np.float32),
    }
    float_net = pybuild.load(gru(1, BANDS, HIDDEN))
    made = pybuild.quantise(float_net, data, boundary="int8").model
    end, begin = (made.graph.tensor(n).quant for n in ("h_next", "h"))
    assert end is not None and begin is not None and end != begin
    net = made.with_state({"auto": "auto"}).build().host(backend)
    plain, h = made.build().host(backend), np.full((1, 1, HIDDEN), begin.zero_point[0])
    for _ in range(12):
        x = rng.integers(-128, 128, (1, 1, BANDS)).astype(np.int8)
        net.run(x=x)
        plain.run(x=x, h=h.astype(np.int8))
        for name in plain.plan.graph.outputs[:1]:
            np.testing.assert_array_equal(net.get_output(name), plain.get_output(name))
        real = (plain.get_output("h_next").astype(float) - end.zero_point[0]) * (
            end.scale[0] / begin.scale[0]
        )
        h = np.clip(np.rint(real) + begin.zero_point[0], -128, 127)
