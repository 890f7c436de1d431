"""A program of two networks, and running what builds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.snippets import snippets
from tests.toolchains import ROOT, completed

STUBS = Path(__file__).resolve().parent
SAID = "digits: self-test: no error\n"
SCORES = "scores: -6 -5 -33 16 -37 -9 3 3 56 15\n"
TWO_SAY = SAID + "floats: self-test: no error\n"
# what programs have beside `floats`: a real network always by make, by others rarely
BOTH = ("digits", "kws")
FIRST = ("digits", pytest.param("kws", marks=pytest.mark.sweep))

_BEGIN = """\
#include "digits.h"
#include "floats.h"

static uint8_t arena[DIGITS_ARENA_BYTES] __attribute__((aligned(DIGITS_ARENA_ALIGN)));
static uint8_t other[FLOATS_ARENA_BYTES] __attribute__((aligned(FLOATS_ARENA_ALIGN)));
static struct digits digits;
static struct floats floats;
static struct crt_params params;

"""
_TEST = """\
    const struct digits_memory memory = DIGITS_MEMORY(arena);
    const struct floats_memory room = FLOATS_MEMORY(other);
    int error = digits_init(&digits, &memory);
    int second = floats_init(&floats, &room);

    if (error == CRT_OK)
        error = digits_selftest(&digits);
    if (second == CRT_OK)
        second = floats_open_params(&params, NULL);
    if (second == CRT_OK)
        second = floats_load_params(&floats, &params);
    if (second == CRT_OK)
        second = floats_selftest(&floats);
"""
TWO = f"""\
{_BEGIN}#include <stdio.h>

int main(void)
{{
{_TEST}    printf("digits: self-test: %s\\n", crt_strerror(error));
    printf("floats: self-test: %s\\n", crt_strerror(second));
    return error != CRT_OK || second != CRT_OK;
}}
"""
SKETCH = f"""\
{_BEGIN}void setup()
{{
{_TEST}    Serial.begin(115200);
    Serial.print("digits: self-test: ");
    Serial.println(crt_strerror(error));
    Serial.print("floats: self-test: ");
    Serial.println(crt_strerror(second));
}}

void loop()
{{
}}
"""


def page_files(page: Path, folder: Path) -> str:
    """Writes the files that a page of docs/ shows; what it says that comes of them."""
    found = list(snippets(ROOT, page))
    for block in found:
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)
    (told,) = [b.text for b in found if not b.language and "self-test" in b.text]
    return told


def of(first: str, text: str) -> str:
    """A program, or what it prints, with another network than digits."""
    return text.replace("digits", first).replace("DIGITS", first.upper())


def said(
    words: Sequence[object],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """What a program printed that must succeed."""
    return completed(words, cwd, env).stdout
