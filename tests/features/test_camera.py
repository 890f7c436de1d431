"""examples/camera: frames to things, line by line, in numpy, compiled, and on a
simulated board with the bits of numpy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tests.bench.camera_costs import watch
from tests.toolchains import ROOT, require

EACH, SEED = 3, 21


@pytest.fixture(scope="module")
def chains() -> Any:
    return watch().chains()


def test_most_things_are_seen(chains: Any) -> None:
    """In float and in int8; compiled and by numpy: the same scores."""
    given, shown = watch("scene").frames(EACH, SEED)
    for chain in chains:
        scores = watch().Compiled(chain)(given)
        twin = chain(given)["scores"]
        if scores.dtype == np.int8:
            np.testing.assert_array_equal(scores, twin)
        found = scores.reshape(len(shown), -1).argmax(1)
        assert (found == shown).mean() >= 0.85


def test_lines_on_a_board(chains: Any) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    given, _ = watch("scene").frames(1, SEED)
    np.testing.assert_array_equal(
        watch().Board(chains[1])(given), chains[1](given)["scores"]
    )


def test_no_frame_is_held(chains: Any) -> None:
    """RAM of the whole, line by line: less than a tenth of a frame."""
    tables = watch().built(chains[1]).tables
    assert tables.arena_bytes + tables.instance_bytes < 160 * 120 * 2 // 10


def test_things_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["watch.py", "--each", "2"])
    watch().main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["float", "int8"]
    assert all(line.endswith("of 8 frames right") for line in lines)


def test_the_front_of_the_training_is_the_front_of_the_build() -> None:
    folder = ROOT / "examples" / "camera"
    assert "pictures().plain.real(taken)" in (folder / "train.py").read_text()
    assert (
        'read_front(HERE / "front.toml").features' in (folder / "watch.py").read_text()
    )
