"""A program that hears words: samples from a file or, on a board, in it; on stdout
each step of the nets and each word.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pybuild.dtype import Array
from pybuild.wake import WakeWords
from tests.toolchains import INCLUDE, require, run, runtime

MAIN = """\
#include <stdio.h>
#include <string.h>
#include "@_words.h"
INPUT

static uint8_t arena[^_ARENA_BYTES] __attribute__((aligned(^_ARENA_ALIGN)));
static struct @_words w;
static int row;

static void heard(void *context, uint32_t word)
{
    (void)context;
    printf("heard %d %d\\n", (int)row, (int)word);
}

int main(int count, char **words)
{
    const struct @_memory memory = ^_MEMORY(arena);
    int16_t samples[^_HOP];
    uint32_t i, n = (uint32_t)(sizeof w.scores / sizeof w.scores[0]);
    int filled, error = @_words_init(&w, &memory);

    if (error != CRT_OK || !begin(count, words))
        return 1;
    for (row = -SILENT; next(samples); row++) {
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
    return 0;
}
"""
FILE = """
static FILE *file;

static int begin(int count, char **words)
{
    file = count == 2 ? fopen(words[1], "rb") : NULL;
    return file != NULL;
}

static int next(int16_t *samples)
{
    return fread(samples, 2, ^_HOP, file) == ^_HOP;
}
"""
ARRAY = """
static const int16_t sound[] = {SOUND};
static uint32_t at;

static int begin(int count, char **words)
{
    (void)count, (void)words;
    return 1;
}

static int next(int16_t *samples)
{
    if (at + ^_HOP > sizeof sound / 2)
        return 0;
    memcpy(samples, &sound[at], ^_HOP * 2);
    at += ^_HOP;
    return 1;
}
"""


def sources(words: WakeWords, folder: Path, sound: Array | None = None) -> list[Path]:
    """Writes the program's C; sound: what it hears, for a board without files."""
    name = words.name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in words.sources().items():
        (folder / file).write_text(text)
    nets = ", ".join(
        f"{name}_nets_{net.name}(&w.models.{name}_nets)" for net in words.words.nets
    )
    numbers = "" if sound is None else ", ".join(map(str, sound.tolist()))
    given = FILE if sound is None else ARRAY.replace("SOUND", numbers)
    text = MAIN.replace("INPUT", given).replace("@", name).replace("^", name.upper())
    text = text.replace("SILENT", str(words.words.silent))
    text = text.replace("LAST[i]", f"((const uint8_t *[]){{{nets}}})[i]")
    (folder / "main.c").write_text(text)
    return sorted(folder.glob("*.c"))


def program(words: WakeWords, folder: Path, *flags: str) -> Path:
    """Compiles it for this machine with everything that it needs."""
    made, tool = folder / "listen", require("gcc")
    own, objects = sources(words, folder), runtime(tool, *flags)
    run([tool, *flags, f"-I{INCLUDE}", f"-I{folder}", *own, *objects, "-o", made])
    return made


def listened(
    program: Path, samples: Array, names: list[str]
) -> tuple[Array, list[tuple[int, str]]]:
    """Probabilities uint8[steps, nets], and at which row which word was heard."""
    file = program.with_suffix(".raw")
    file.write_bytes(samples.astype("<i2").tobytes())
    return printed(run([program, file]), names)


def printed(text: str, names: list[str]) -> tuple[Array, list[tuple[int, str]]]:
    """What such a program printed."""
    lines = [line.split() for line in text.splitlines()]
    steps = [[int(n) for n in line[1:]] for line in lines if line[0] == "step"]
    heard = [
        (int(line[1]), names[int(line[2])]) for line in lines if line[0] == "heard"
    ]
    return np.array(steps, np.uint8), heard
