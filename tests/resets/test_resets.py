"""Whatever a reset breaks off, a device that starts again has the bits that it would
have had, or those of before; and the sweep sees where this is not so.

State is saved as docs/streams.md says, by the code of that page.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.toolchains import ROOT, require_module

require_module("unicorn")
from tests.resets import scenes  # noqa: E402
from tests.resets.__main__ import TABLE, row  # noqa: E402
from tests.resets.device import Memory, linked  # noqa: E402
from tests.resets.scenes import (  # noqa: E402
    ANEW,
    BEFORE,
    NEW,
    REFUSED,
    SCENES,
    WRONG,
    Stream,
    Turns,
    Weights,
)

OFTEN = ("state, to two pages of flash", "weights that are replaced in flash")
# what may come of it, beside what was being done
MAY = {
    "state, saved to two slots in turn": {BEFORE},
    "state, to two pages of flash": {BEFORE},
    "state, to one slot": {BEFORE, ANEW},
    "weights that are replaced in flash": {BEFORE, ANEW},
    "weights that are written over": {BEFORE, ANEW},
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in OFTEN else pytest.mark.sweep)
        for name in SCENES
    ],
)
def test_what_starts_again_is_right(name: str, tmp_path: Path) -> None:
    scene, every = SCENES[name]
    made = scene(tmp_path)
    found = made.counted(61 * every) + made.counted(5 * every, ["kept"])
    assert set(found) == MAY.get(name, set()) | {NEW} and found.total() > 100, found


def test_resets_after_resets_and_memory_that_never_held_a_state(
    tmp_path: Path,
) -> None:
    stream = Stream(tmp_path)
    assert stream.chained(150) > 30
    device, chance = stream.device, random.Random(1)
    for _ in range(50):
        held = chance.randbytes(device.kept[1])
        stream.start(Memory(chance.randbytes(device.ram[1]), held))
        assert stream.after(0) == BEFORE  # no frame is done


@pytest.mark.parametrize("flags", [(), ("-DBY_HAND", "-DFORGOTTEN")])
def test_a_turn_is_begun_anew(flags: tuple[str, ...], tmp_path: Path) -> None:
    """By an image's init. By hand, where it is not, most resets leave it taken for
    ever, if RAM is kept."""
    found = Turns(tmp_path, *flags).counted(1999, ["kept"])
    if flags:
        assert found[REFUSED] > found[NEW]
    else:
        assert set(found) == {NEW} and found[NEW] > 20


@pytest.mark.parametrize(
    "what", ["state", pytest.param("params", marks=pytest.mark.sweep)]
)
def test_a_check_that_is_missing_is_found(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, none = {
        "state": ("if (sum != wanted)", "if (sum == 1u && wanted == 0u)"),
        "params": (
            "if (crt_crc32(0, image",
            "if (c->total == 1u && crt_crc32(0, image",
        ),
    }[what]

    def broken(tree: Path, program: Path, *flags: str) -> Path:
        source = tree / "crt" / "src" / f"{what}.c"
        text = source.read_text()
        assert text.count(check) == 1
        source.write_text(text.replace(check, none))
        return linked(tree, program, *flags)

    monkeypatch.setattr(scenes, "linked", broken)
    if what == "state":
        found = Stream(tmp_path, "-DONE_SLOT").counted(61, ["cleared"])
    else:
        found = Weights(tmp_path, "overwrite").counted(997, ["cleared"])
    assert found[WRONG] > 1, found


def test_the_page_has_a_row_of_each() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    rows = page[page.index(TABLE) :].split("\n\n")[0].splitlines()[2:]
    parts = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows]
    cells = {part[0]: part[1:] for part in parts}
    assert list(cells) == list(SCENES)
    for name, (_, _, _, before, anew, refused, failed) in cells.items():
        may = MAY.get(name, set())
        assert (before != "0", anew != "0") == (BEFORE in may, ANEW in may)
        assert refused == failed == "0"


def test_a_row_adds_up() -> None:
    told = row("x", 1000, Counter({NEW: 2000, WRONG: 1, "hung": 2}))
    assert told == "| x | 1,000 | 2,003 | 2,000 | 0 | 0 | 0 | 3 |"
