"""crt's readers of what may be hostile, model-checked: for every input up to a bound no
access leaves its memory. By CBMC, which Debian has from 13 on."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.toolchains import INCLUDE, ROOT

CHECKS = (
    "--bounds-check",
    "--pointer-check",
    "--pointer-overflow-check",
    "--signed-overflow-check",
    "--unwinding-assertions",
)
ABSENT = "there is no cbmc: Debian has it from 13 on, 12 has none"


@dataclass(frozen=True)
class Harness:
    """tests/cbmc/NAME.c and the file of crt that it reads.

    most    bytes of its input, and what else bounds it; turns: of any loop, at most
    broken  a line of the file, and what it must not become
    """

    name: str
    reads: str
    most: int
    defines: tuple[str, ...]
    turns: int
    broken: tuple[str, str]


HARNESSES = (
    Harness(
        "lz4", "an LZ4 block, into 7 bytes or fewer", 5,
        ("ROOM=7", "CRT_NO_STRING_H"), 9,
        ("distance == 0u || distance > (uint32_t)behind", "distance == 0u"),
    ),
    Harness(
        "frame", "a stream of frames, into 20 bytes or fewer", 24, ("ROOM=20",), 25,
        ("if (in->count == in->room_bytes)", "if (in->count > in->room_bytes)"),
    ),
    Harness(
        "params", "a parameter image, of one entry at most", 84, (), 6,
        ("!holds(c, data, stored)", "c->first > c->total"),
    ),
    Harness(
        "hmac", "what a tag is made of, of three lengths", 52, (), 66,
        ("s->block[s->bytes % (uint32_t)BLOCK] = data[i];",
         "s->block[s->bytes] = data[i];"),
    ),
    Harness(
        "state", "saved state, of two pieces", 16, (), 18,
        ("return bytes == (uint32_t)wanted ?", "return bytes >= 4u ?"),
    ),
)  # fmt: skip


def checked(harness: Harness, folder: Path, broken: bool = False) -> bool:
    """Whether it holds; of a copy with one check taken out it must not."""
    source = ROOT / "crt" / "src" / f"{harness.name}.c"
    if broken:
        text = source.read_text()
        assert text.count(harness.broken[0]) == 1, harness.broken
        source = folder / source.name
        source.write_text(text.replace(*harness.broken))
    command = [
        shutil.which("cbmc") or "cbmc", ROOT / "tests" / "cbmc" / f"{harness.name}.c",
        source, "-I", INCLUDE, f"-DMOST={harness.most}",
        *(f"-D{one}" for one in harness.defines),
        *CHECKS, "--unwind", str(harness.turns),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    words = "VERIFICATION SUCCESSFUL", "VERIFICATION FAILED"
    assert any(word in done.stdout for word in words), done.stdout + done.stderr
    return words[0] in done.stdout
