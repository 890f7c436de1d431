"""NAME_predict: a run without an instance, alone and in threads, under sanitizers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.install import crt_include
from pybuild.library import Library
from tests.emit.test_generated_c import CLEAN, SANITIZE
from tests.graphs.networks import classifier
from tests.toolchains import links, require, run, runtime

IMAGES = np.random.default_rng(5).integers(-128, 128, (4, 192)).astype(np.int8)

ONCE = """
#include "tiny.h"
#include <stdio.h>
static _Alignas(16) uint8_t arena[TINY_ARENA_BYTES + 16];
static const int8_t images[4][TINY_IMAGE_LEN] = {@images};
int main(void)
{
    int8_t scores[TINY_SCORES_LEN], stem[TINY_STEM_LEN];
    const struct tiny_outputs both = {scores, stem};
    const struct tiny_outputs one = {scores, NULL};
    struct tiny_inputs in = {NULL};
    int i, k;
    for (i = 0; i < 4; i++) {
        in.image = images[i];
        if (tiny_predict(arena, &in, i % 2 ? &one : &both))
            return 1;
        for (k = 0; k < 5; k++)
            printf("%d ", scores[k]);
        for (k = 0; k < 128; k++)
            printf("%d ", stem[k]);
    }
    if (tiny_predict(NULL, &in, &both) != CRT_ERR_NULL ||
        tiny_predict(arena, NULL, &both) != CRT_ERR_NULL ||
        tiny_predict(arena, &in, NULL) != CRT_ERR_NULL ||
        tiny_predict(arena + 1, &in, &both) != CRT_ERR_ALIGN)
        return 2;
    in.image = NULL;
    return tiny_predict(arena, &in, &both) != CRT_ERR_INPUT_MISSING;
}
"""

THREADS = """
#include "tiny.h"
#include <pthread.h>
#include <string.h>
static _Thread_local _Alignas(16) uint8_t arena[TINY_ARENA_BYTES];
static const int8_t images[4][TINY_IMAGE_LEN] = {@images};
static int8_t wanted[4][TINY_SCORES_LEN];
static void *work(void *argument)
{
    const long which = (long)(intptr_t)argument;
    const struct tiny_inputs in = {images[which]};
    int8_t scores[TINY_SCORES_LEN];
    const struct tiny_outputs out = {scores, NULL};
    long i, bad = 0;
    for (i = 0; i < 100; i++)
        bad += tiny_predict(arena, &in, &out) != CRT_OK ||
               memcmp(scores, wanted[which], sizeof scores) != 0;
    return (void *)(intptr_t)bad;
}
int main(void)
{
    pthread_t threads[4];
    long i, bad = 0;
    for (i = 0; i < 4; i++) {
        const struct tiny_inputs in = {images[i]};
        const struct tiny_outputs out = {wanted[i], NULL};
        if (tiny_predict(arena, &in, &out) != CRT_OK)
            return 2;
    }
    for (i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i))
            return 3;
    for (i = 0; i < 4; i++) {
        void *more;
        pthread_join(threads[i], &more);
        bad += (long)(intptr_t)more;
    }
    return bad != 0;
}
"""

PARAMETERS = """
#include "tiny.h"
#include <stdio.h>
static _Alignas(16) uint8_t arena[TINY_ARENA_BYTES];
static _Alignas(16) uint8_t file[1 << 16];
static const int8_t images[4][TINY_IMAGE_LEN] = {@images};
int main(int count, char **words)
{
    const struct tiny_memory memory = TINY_MEMORY(arena);
    const void *where[16];
    struct tiny_inputs in = {images[0], NULL};
    int8_t scores[TINY_SCORES_LEN], stem[TINY_STEM_LEN];
    const struct tiny_outputs out = {scores, stem};
    struct crt_params weights;
    struct tiny m;
    FILE *from = count > 1 ? fopen(words[1], "rb") : NULL;
    size_t size = from ? fread(file, 1, sizeof file, from) : 0;
    int i, k;
    if (from)
        fclose(from);
    if (crt_params_verify(&weights, file, (uint32_t)size) ||
        tiny_init(&m, &memory) || tiny_load_params(&m, &weights))
        return 1;
    for (i = 0; i < crt_graph_parameter_count(&m.graph); i++)
        where[i] = crt_graph_parameter(&m.graph, (uint32_t)i);
    if (tiny_predict(arena, &in, &out) != CRT_ERR_UNBOUND)
        return 2;
    in.parameters = where;
    for (i = 0; i < 4; i++) {
        in.image = images[i];
        if (tiny_predict(arena, &in, &out))
            return 3;
        for (k = 0; k < 5; k++)
            printf("%d ", scores[k]);
        for (k = 0; k < 128; k++)
            printf("%d ", stem[k]);
    }
    where[0] = NULL;
    return tiny_predict(arena, &in, &out) != CRT_ERR_UNBOUND;
}
"""


def library(**options: object) -> Library:
    return classifier("tiny").model("scores", "stem").build(**options)


def wanted(every: int = 1) -> Array:
    """Scores and stem of each image; the stem of every second one, if so told, is
    that of the image before."""
    net = library().host()
    rows = []
    for index, image in enumerate(IMAGES):
        net.run(image=image.reshape(1, 8, 8, 3))
        if index % every == 0:
            stem = net.get_output("stem")
        rows += [net.get_output("scores").ravel(), stem.ravel()]
    return np.concatenate(rows)


def compiled(
    made: Library, program: str, folder: Path, compiler: str, checks: list[str]
) -> Path:
    folder = folder / "c"
    folder.mkdir()
    for file, text in made.sources().items():
        (folder / file).write_text(text)
    rows = ["{" + ",".join(map(str, row)) + "}" for row in IMAGES.tolist()]
    (folder / "main.c").write_text(program.replace("@images", ",".join(rows)))
    flags = [*CLEAN, "-std=c11", *checks, "-O1"]
    places = [f"-I{folder}", f"-I{crt_include()}"]
    run([compiler, *flags, *places, "-c", *sorted(folder.glob("*.c"))], folder)
    files = [*folder.glob("*.o"), *runtime(compiler, *flags)]
    run([compiler, *flags, *files, "-pthread", "-o", folder / "program"])
    return folder / "program"


# clang has other trees: test_generated_c.py
COMPILERS = ("gcc", pytest.param("clang", marks=pytest.mark.sweep))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_run_without_an_instance(compiler: str, tmp_path: Path) -> None:
    require(compiler)
    made = compiled(library(), ONCE, tmp_path, compiler, SANITIZE[compiler])
    have = np.array(run([made]).split(), int)
    np.testing.assert_array_equal(have, wanted(every=2))


# @req NAME_predict:Thread
def test_threads_each_with_its_own_arena(tmp_path: Path) -> None:
    gcc = require("gcc")
    checks = ["-g", "-fsanitize=thread"]
    if not links(gcc, checks, tmp_path):
        checks = ["-g"]
    assert run([compiled(library(), THREADS, tmp_path, gcc, checks)]) == ""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_with_parameters_by_address(compiler: str, tmp_path: Path) -> None:
    require(compiler)
    made = library(params="replaceable")
    (tmp_path / "weights.crtp").write_bytes(made.image())
    program = compiled(made, PARAMETERS, tmp_path, compiler, SANITIZE[compiler])
    have = np.array(run([program, tmp_path / "weights.crtp"]).split(), int)
    np.testing.assert_array_equal(have, wanted())
