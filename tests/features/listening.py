"""A C program that pushes samples into nets in pieces, and what it must say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.library import Library

Outputs = Mapping[str, Array]

_HEAD = """
#include <stdio.h>
{includes}
static const int16_t pcm[] = {{{pcm}}};
static const uint16_t chunks[] = {{{chunks}}};

static void tell(const struct crt_graph *g)
{{
    uint32_t j;
    uint32_t k;

    for (j = 0; j < g->model->output_count; j++) {{
        const uint8_t *at = (const uint8_t *)crt_graph_output(g, j);

        printf(" ");
        for (k = 0; k < crt_graph_output_info(g, j)->bytes; k++) {{
            putchar("0123456789abcdef"[at[k] >> 4]);
            putchar("0123456789abcdef"[at[k] & 15]);
        }}
    }}
}}
"""
# what waits is forgotten by a reset, and by a state that is restored, not by one that
# is refused
_ONE = """
static uint8_t memory_{n}[{upper}_ARENA_BYTES + {upper}_ARENA_ALIGN];

static int listen_{n}(void)
{{
    static struct {n} m;
    static uint8_t kept[{upper}_STATE_BYTES];
    struct {n}_memory memory;
    const int16_t *from = pcm;
    uint32_t i;

    i = (uint32_t)((uintptr_t)memory_{n} % {upper}_ARENA_ALIGN);
    memory.arena.ptr = memory_{n} + {upper}_ARENA_ALIGN - i;
    memory.arena.bytes = {upper}_ARENA_BYTES;
    if ({n}_init(&m, &memory) != CRT_OK)
        return 1;
    if ({n}_push_samples(&m, NULL, 1) != CRT_ERR_NULL ||
        {n}_push_samples(NULL, pcm, 1) != CRT_ERR_NULL ||
        {n}_samples_wanted(NULL) != 0 || {n}_samples_wanted(&m) != {samples})
        return 2;
    if ({n}_push_samples(&m, pcm, 3) != 0 || {n}_reset(&m) != CRT_OK)
        return 3;
    if ({n}_save_state(&m, kept) != CRT_OK ||
        {n}_push_samples(&m, pcm + 3, {samples} + 2) != 1)
        return 4;
    kept[0] ^= 1;
    if ({n}_restore_state(&m, kept) != CRT_ERR_STATE ||
        {n}_samples_wanted(&m) != {samples} - 2)
        return 6;
    kept[0] ^= 1;
    if ({n}_restore_state(&m, kept) != CRT_OK)
        return 4;
    printf("{n}\\n");
    for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {{
        int done = {n}_push_samples(&m, from, chunks[i]);

        if (done < 0)
            return 5;
        printf("%d", done);
        from += chunks[i];
        if (done != 0)
            tell(&m.graph);
        printf("\\n");
    }}
    return 0;
}}
"""
_MAIN = """
int main(void)
{{
    int error = 0;

{calls}    return error;
}}
"""


def listening(nets: Mapping[str, Library], pcm: Array, chunks: Sequence[int]) -> str:
    """The program; each net is called by its name."""
    numbers = (", ".join(map(str, row)) for row in (pcm.tolist(), chunks))
    includes = "\n".join(f'#include "{name}.h"' for name in nets)
    text = _HEAD.format(includes=includes, pcm=next(numbers), chunks=next(numbers))
    for name, library in nets.items():
        samples = library.plan.graph.tensor("samples").size
        text += _ONE.format(n=name, upper=name.upper(), samples=samples)
    calls = "".join(f"    error |= listen_{name}();\n" for name in nets)
    return f"{text}{_MAIN.format(calls=calls)}"


def wanted(
    found: Mapping[str, Outputs], samples: Mapping[str, int], chunks: Sequence[int]
) -> str:
    """found: of each net every output of all runs, by its twin."""
    lines = []
    for name, outputs in found.items():
        lines.append(name)
        at, done = 0, 0
        for chunk in chunks:
            at += chunk
            fresh = at // samples[name] - done
            done += fresh
            told = [row[done - 1].tobytes().hex() for row in outputs.values()]
            lines.append(" ".join([str(fresh), *(told if fresh else [])]))
    return "\n".join(lines) + "\n"


def drawn_chunks(samples: int, most: int, seed: int = 0) -> list[int]:
    """None, one, many samples at a time; together `samples`."""
    rng, chunks = np.random.default_rng(seed), [0, 1, most]
    while sum(chunks) < samples:
        chunks.append(int(rng.integers(0, most) // rng.integers(1, 9)))
    return [*chunks[:-1], samples - sum(chunks[:-1])]
