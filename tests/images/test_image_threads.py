"""Several models, shared weights, inputs without memory and threads at once, under
sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include
from tests.emit.test_generated_c import CLEAN, shell
from tests.graphs.networks import classifier
from tests.images.test_image_c import written
from tests.installed.test_several_models import IMAGE
from tests.toolchains import absent, links, require, runtime

THREADS = """
#include "pair.h"
#include <pthread.h>
#include <string.h>
static _Alignas(16) uint8_t arena[PAIR_ARENA_BYTES];
static _Alignas(16) uint8_t further[A_ARENA_BYTES];
static _Alignas(16) const int8_t pixels[A_IMAGE_LEN] = {@pixels};
static _Alignas(16) int8_t scores[3][A_SCORES_LEN];
static struct pair all;
static struct a other;
static struct crt_params of[2];
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static int is_free;
static int change_turns(struct crt_turn *shared, int is_taken)
{
    (void)shared;
    pthread_mutex_lock(&gate);
    while (is_taken && !is_free)
        pthread_cond_wait(&freed, &gate);
    is_free = !is_taken;
    if (!is_taken)
        pthread_cond_signal(&freed);
    pthread_mutex_unlock(&gate);
    return 0;
}
static int run_one(int which)
{
    if (which == 2)
        return a_run(&other);
    return which == 1 ? b_run(&all.b) : a_run(&all.a);
}
static void *work(void *which)
{
    static const int8_t want[A_SCORES_LEN] = {@scores};
    int own = *(const int *)which;
    int i;
    for (i = 0; i < 100; i++)
        if (run_one(own) || memcmp(scores[own], want, sizeof want))
            return which;
    return NULL;
}
int main(void)
{
    static const int numbers[3] = {0, 1, 2};
    const struct pair_memory memory = PAIR_MEMORY(arena);
    const struct crt_region region = {further, sizeof further};
    const struct a_memory own = {region};
    pthread_t threads[3];
    void *wrong = NULL;
    int i, bad = 0;
    if (pair_init(&all, &memory) || a_init(&other, &own) ||
        a_open_params(&of[0], NULL) || b_open_params(&of[1], NULL) ||
        a_load_params(&all.a, &of[0]) || b_load_params(&all.b, &of[1]) ||
        a_share_params(&other, &all.a))
        return 1;
    if (a_run(&all.a) != CRT_ERR_UNBOUND ||
        a_bind_image(&all.a, pixels) || a_bind_scores(&all.a, scores[0]) ||
        b_bind_image(&all.b, pixels) || b_bind_scores(&all.b, scores[1]) ||
        a_bind_image(&other, pixels) || a_bind_scores(&other, scores[2]))
        return 2;
    all.turns[0].wait = change_turns;
    for (i = 0; i < 3; i++)
        bad |= pthread_create(&threads[i], NULL, work, (void *)&numbers[i]);
    for (i = 0; i < 3; i++) {
        pthread_join(threads[i], &wrong);
        bad |= wrong != NULL;
    }
    return bad || a_release_params(&other) || a_release_params(&all.a) ||
           b_release_params(&all.b) || crt_params_close(&of[0]) ||
           crt_params_close(&of[1]);
}
"""


# @req NAME_run:Thread
@pytest.mark.parametrize("checks", ["thread", "address,undefined"])
def test_models_in_threads(checks: str, tmp_path: Path) -> None:
    """Two in one memory wait for each other, a third shares weights with the first;
    inputs and outputs have no memory but what is bound."""
    gcc, sanitize = require("gcc"), ["-g", f"-fsanitize={checks}"]
    if not links(gcc, sanitize, tmp_path):
        absent(f"gcc has no -fsanitize={checks}")
    folder = tmp_path / "c"
    folder.mkdir()
    models = {name: classifier("tiny").model() for name in "ab"}
    image = pybuild.build_image(
        models, name="pair", params="replaceable", exclusive=[("a", "b")],
        lazy=("image", "scores"),
    )  # fmt: skip
    net = classifier("tiny").model().build().host()
    want = net.run(image=IMAGE)["scores"].ravel().tolist()
    pixels = ",".join(map(str, IMAGE.ravel().tolist()))
    text = THREADS.replace("@pixels", pixels)
    (folder / "main.c").write_text(text.replace("@scores", ",".join(map(str, want))))
    flags = [*CLEAN, "-std=gnu11", *sanitize, "-fno-sanitize-recover=all", "-O1"]
    files = [*written(image, folder), *runtime("gcc", *flags)]
    flags += [f"-I{folder}", f"-I{crt_include()}"]
    shell(gcc, *flags, *files, "-pthread", "-o", folder / "program")
    assert shell(folder / "program") == ""
