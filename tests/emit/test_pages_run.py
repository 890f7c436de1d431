"""C of pages that could run for ever: it is run, and ends with what numpy gives."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

import pybuild
from tests.conftest import ROOT
from tests.snippets import snippets
from tests.toolchains import require

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
ROWS, WIDTH, RUNS, SECONDS = 8, 8, 2, 60
MAIN = """
#include "digits.h"
#include <stdio.h>

static uint8_t arena[DIGITS_ARENA_BYTES] CRT_ALIGNED(16);
static struct digits model;
static const int8_t image[] = {%s};
static const int8_t *scores;
static unsigned at;

static const int8_t *camera_line(void)
{
    return image + %d * (at++ %% %d);
}

static void run(void)
{
%s}

int main(void)
{
    const struct digits_memory memory = DIGITS_MEMORY(arena);
    int i, j;

    if (digits_init(&model, &memory) != CRT_OK)
        return 1;
    for (i = 0; i < %d; i++) {
        run();
        for (j = 0; j < DIGITS_SCORES_LEN; j++)
            printf("%%d ", scores[j]);
    }
    return 0;
}
"""


def test_rows_of_a_camera_are_pushed_to_the_end(tmp_path: Path) -> None:
    """docs/streams.md: each run takes as many rows as there are, twice."""
    gcc = require("gcc")
    (page,) = (s for s in snippets(ROOT, ROOT / "docs" / "streams.md")
               if "camera_line()" in s.text)  # fmt: skip
    model = pybuild.load(DIGITS)
    model.build(tmp_path, name="digits", push="image")
    x = np.random.default_rng(1).integers(-128, 128, (1, ROWS, WIDTH, 1)).astype("i1")
    (want,) = model.build().host("llvm").run(image=x).values()
    given = ", ".join(map(str, x.reshape(-1)))
    main = tmp_path / "main.c"
    main.write_text(MAIN % (given, WIDTH, ROWS, page.text, RUNS))
    sources = [p for p in tmp_path.rglob("*.c") if "example" not in p.parts]
    program = tmp_path / "program"
    command = [gcc, "-std=c99", "-O1", f"-I{tmp_path}", f"-I{tmp_path}/crt/include"]
    subprocess.run([*command, *sources, "-o", program], check=True)
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    np.testing.assert_array_equal(
        [int(n) for n in done.stdout.split()], [*want.reshape(-1)] * RUNS
    )
