"""A program that hears words on this machine: samples from a file, and on stdout each
step of the nets and each word.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pybuild.dtype import Array
from pybuild.wake import WakeWords
from tests.toolchains import INCLUDE, require, run, runtime

MAIN = """\
#include <stdio.h>
#include "@_words.h"

static uint8_t arena[^_ARENA_BYTES] __attribute__((aligned(^_ARENA_ALIGN)));
static struct @_words w;
static long row;

static void heard(void *context, uint32_t word)
{
    (void)context;
    printf("heard %ld %u\\n", row, (unsigned)word);
}

int main(int count, char **words)
{
    const struct @_memory memory = ^_MEMORY(arena);
    int16_t samples[^_HOP];
    uint32_t i, n = (uint32_t)(sizeof w.scores / sizeof w.scores[0]);
    int filled, error = @_words_init(&w, &memory);
    FILE *file = count == 2 ? fopen(words[1], "rb") : NULL;

    if (error != CRT_OK || file == NULL)
        return 1;
    for (row = -(long)SILENT; fread(samples, 2, ^_HOP, file) == ^_HOP; row++) {
        filled = w.filled;
        error = @_words_push(&w, samples, ^_HOP, heard, NULL);
        if (error != CRT_OK)
            return 2;
        if (w.filled == 0 && filled != 0) {
            printf("step");
            for (i = 0; i < n; i++)
                printf(" %d", LAST[i][0]);
            printf("\\n");
        }
    }
    return fclose(file);
}
"""


def program(words: WakeWords, folder: Path, *flags: str, compiler: str = "gcc") -> Path:
    """Compiles it with everything that it needs."""
    name = words.name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in words.sources().items():
        (folder / file).write_text(text)
    nets = ", ".join(
        f"{name}_nets_{net.name}(&w.models.{name}_nets)" for net in words.words.nets
    )
    text = MAIN.replace("@", name).replace("^", name.upper())
    text = text.replace("SILENT", str(words.words.silent))
    text = text.replace("LAST[i]", f"((const uint8_t *[]){{{nets}}})[i]")
    (folder / "main.c").write_text(text)
    made = folder / "listen"
    tool = require(compiler)
    sources = sorted(folder.glob("*.c"))
    objects = runtime(tool, *flags)
    run([tool, *flags, f"-I{INCLUDE}", f"-I{folder}", *sources, *objects, "-o", made])
    return made


def listened(
    program: Path, samples: Array, names: list[str]
) -> tuple[Array, list[tuple[int, str]]]:
    """Probabilities uint8[steps, nets], and at which row which word was heard."""
    file = program.with_suffix(".raw")
    file.write_bytes(samples.astype("<i2").tobytes())
    lines = [line.split() for line in run([program, file]).splitlines()]
    steps = [[int(n) for n in line[1:]] for line in lines if line[0] == "step"]
    heard = [
        (int(line[1]), names[int(line[2])]) for line in lines if line[0] == "heard"
    ]
    return np.array(steps, np.uint8), heard
