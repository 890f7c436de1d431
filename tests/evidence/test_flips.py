"""Whatever the bits of an arena become, no access leaves it."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.flips import flips
from tests.toolchains import require_module


def test_flipped_bits_of_an_arena_lead_nowhere(tmp_path: Path) -> None:
    found = flips(tmp_path, 1000)
    same, other, refused, ended = found["arena"]
    assert same + other + refused == 1000 and other > 500
    assert ended == 0
    same, other, refused, ended = found["counters"]
    assert refused > 0 and ended == 0


def test_on_a_cortex_m4_no_write_leaves_its_memory(tmp_path: Path) -> None:
    """Nothing but arena, instance and stack can be written there."""
    require_module("unicorn")
    from tests.evidence.guarded import Guarded, each_bit, in_arena

    net = Guarded(tmp_path)
    harmless = {"same", "other", "refused"}
    for found in (in_arena(net, 200), each_bit(net, net.counters, 4)):
        assert set(found) <= harmless and found["other"] and found["refused"]
    bits = 8 * net.instance[1]
    assert each_bit(net, net.instance, -1, anew=True) == {"same": bits}
    some = (net.instance[0], 8)  # addresses: the guard does see what leads out
    assert each_bit(net, some, -1)["read stopped"] > 8
