/* Two networks in one memory: as an image wires them, or by hand, with a turn
 * that is begun anew at each start, or (FORGOTTEN) is not. */
#include "duo.h"

#include "device.h"

#include <string.h>

static struct duo all;
static int8_t answers[2][SMALL_SCORES_LEN];

#ifdef BY_HAND

static uint8_t arena[SMALL_ARENA_BYTES > LARGE_ARENA_BYTES ? SMALL_ARENA_BYTES
                                                           : LARGE_ARENA_BYTES]
    __attribute__((aligned(16)));
static struct crt_turn turn;

API int boot(void)
{
    const struct small_memory small = SMALL_MEMORY(arena);
    const struct large_memory large = LARGE_MEMORY(arena);
    int error = small_init(&all.small, &small);

    if (error == CRT_OK) {
        error = large_init(&all.large, &large);
    }
#ifndef FORGOTTEN
    if (error == CRT_OK) {
        error = crt_turn_init(&turn);
    }
#endif
    if (error == CRT_OK) {
        error = crt_graph_share_storage(&all.small.graph, &turn);
    }
    if (error == CRT_OK) {
        error = crt_graph_share_storage(&all.large.graph, &turn);
    }
    return error;
}

#else

static uint8_t arena[DUO_ARENA_BYTES] __attribute__((aligned(DUO_ARENA_ALIGN)));

API int boot(void)
{
    const struct duo_memory memory = DUO_MEMORY(arena);

    return duo_init(&all, &memory);
}

#endif

/* Both, one after the other, each with its image. */
API int infer(const int8_t *images)
{
    int error = small_set_image(&all.small, images);

    if (error == CRT_OK) {
        error = small_run(&all.small);
    }
    if (error == CRT_OK) {
        memcpy(answers[0], small_scores(&all.small), SMALL_SCORES_LEN);
        error = large_set_image(&all.large, images + SMALL_IMAGE_LEN);
    }
    if (error == CRT_OK) {
        error = large_run(&all.large);
    }
    if (error == CRT_OK) {
        memcpy(answers[1], large_scores(&all.large), LARGE_SCORES_LEN);
    }
    return error;
}

API const int8_t *scores(void)
{
    return answers[0];
}
