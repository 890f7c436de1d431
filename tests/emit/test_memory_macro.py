"""NAME_MEMORY takes an array that is large enough: a pointer, or less, does not
compile; CRT_ALIGNED aligns it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include
from tests.golden.networks import conv_int8
from tests.toolchains import STRICT, require

PROGRAM = """
#include "conv_int8.h"
static CRT_ALIGNED(64) uint8_t arena[CONV_INT8_ARENA_BYTES];
static CRT_ALIGNED(64) uint8_t small[CONV_INT8_ARENA_BYTES - 1u];
extern void *small_is_used;
void *small_is_used = small;
int main(void)
{
    static struct conv_int8 m;
    uint8_t *pointer = arena;
    const struct conv_int8_memory memory = CONV_INT8_MEMORY(GIVEN);
    (void)pointer;
    return conv_int8_init(&m, &memory) + (int)((uintptr_t)arena % 64u);
}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    conv_int8().model().build(folder / "t")
    (folder / "main.c").write_text(PROGRAM)
    return folder


def _compiled(tree: Path, words: list[str], given: str) -> tuple[int, str]:
    flags = [f"-DGIVEN={given}", f"-I{tree / 't'}", f"-I{crt_include()}"]
    call = [require(words[0]), *words[1:], *flags, "-fsyntax-only", tree / "main.c"]
    done = subprocess.run(call, capture_output=True, text=True)
    return done.returncode, done.stderr


COMPILERS = (
    ["gcc", *STRICT], ["clang", *STRICT],
    ["g++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"],
    ["clang++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"],
)  # fmt: skip


@pytest.mark.parametrize("words", COMPILERS, ids=lambda words: str(words[0]))
def test_arrays_that_are_large_enough_alone(words: list[str], tree: Path) -> None:
    assert _compiled(tree, words, "arena") == (0, "")
    for given in ("pointer", "small"):
        code, said = _compiled(tree, words, given)
        assert code != 0 and "negative" in said


def test_several_regions_are_checked_too(tmp_path: Path) -> None:
    model = conv_int8().model()
    header = str(
        model.build(name="d", regions=["dtcm=64:fast", "sram=1K"]).files()["d.h"]
    )
    assert "CRT_ROOM(dtcm, D_DTCM_BYTES)" in header
    assert "CRT_ROOM(sram, D_SRAM_BYTES)" in header
    image = pybuild.build_image({"a": model, "b": model}, name="two")
    assert "CRT_ROOM(array, TWO_ARENA_BYTES)" in str(image.files()["two.h"])
