"""Whatever the bits of an arena become, no access leaves it."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.flips import flips


def test_flipped_bits_of_an_arena_lead_nowhere(tmp_path: Path) -> None:
    found = flips(tmp_path, 1000)
    same, other, refused, ended = found["arena"]
    assert same + other + refused == 1000 and other > 500
    assert ended == 0
    same, other, refused, ended = found["counters"]
    assert refused > 0 and ended == 0
