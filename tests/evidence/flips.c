/* Bits that flip between two calls. In the arena: whatever is there, no access
 * may leave it, which AddressSanitizer watches. In the counters of bands
 * between two pushes, and in the instance, each bit once, in a process of its
 * own: the same result, another one, refused, or ended by the guard. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAME, OTHER, REFUSED, ENDED, KINDS };

#define TOLD 40 /* sanitizers end a process with 1 */

static int8_t image[NET_IMAGE_LEN];
static int8_t right[NET_SCORES_LEN];
static struct net model;
static uint8_t *arena;
static int counter_bit = -1;

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static int infer(uint32_t *seed, uint32_t flips)
{
    uint32_t row;
    uint32_t i;
    int error = net_reset(&model);

    for (row = 0; row < NET_IMAGE_ROWS && error == 0; row++) {
        for (i = 0; i < flips; i++) {
            arena[next(seed) % NET_ARENA_BYTES] ^=
                (uint8_t)(1u << (next(seed) & 7u));
        }
        if (row == 4 && counter_bit >= 0) {
            arena[net_model.counters + (uint32_t)counter_bit / 8u] ^=
                (uint8_t)(1u << (counter_bit & 7));
        }
        error = net_push_rows(&model, NET_IMAGE_INPUT,
                              image + row * NET_IMAGE_ROW_LEN, 1);
    }
    return error != 0 ? error : net_run(&model);
}

static int kind(int error)
{
    if (error != 0) {
        return REFUSED;
    }
    return memcmp(net_scores(&model), right, sizeof right) == 0 ? SAME : OTHER;
}

static int flipped(size_t bit, int in_counters)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        uint32_t seed = 1;

        (void)!freopen("/dev/null", "w", stderr);
        alarm(5);
        if (in_counters) {
            counter_bit = (int)bit;
        } else {
            ((uint8_t *)&model)[bit / 8] ^= (uint8_t)(1u << (bit & 7u));
        }
        _exit(TOLD + kind(infer(&seed, 0)));
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) >= TOLD
               ? WEXITSTATUS(status) - TOLD
               : ENDED;
}

static void told(const char *what, size_t bits, int in_counters)
{
    uint32_t counts[KINDS] = {0};
    size_t i;

    for (i = 0; i < bits; i++) {
        counts[flipped(i, in_counters)]++;
    }
    printf("%s %u same %u other %u refused %u ended\n", what, counts[SAME],
           counts[OTHER], counts[REFUSED], counts[ENDED]);
}

int main(void)
{
    struct net_memory memory;
    uint32_t counts[KINDS] = {0};
    uint32_t seed = 24;
    size_t i;

    arena = malloc(NET_ARENA_BYTES); /* guards of the sanitizer lie around it */
    memory.arena.ptr = arena;
    memory.arena.bytes = NET_ARENA_BYTES;
    for (i = 0; i < NET_IMAGE_LEN; i++) {
        image[i] = (int8_t)(i * 37u);
    }
    if (net_init(&model, &memory) != 0 || infer(&seed, 0) != 0) {
        return 1;
    }
    memcpy(right, net_scores(&model), sizeof right);
    for (i = 0; i < RUNS; i++) {
        counts[kind(infer(&seed, 1 + (uint32_t)(i % 16)))]++;
    }
    printf("arena %u same %u other %u refused 0 ended\n", counts[SAME],
           counts[OTHER], counts[REFUSED]);
    fflush(stdout);
    if (infer(&seed, 0) != 0 || kind(0) != SAME) {
        return 2; /* a run without flips is right again */
    }
    told("counters", 16u * net_model.step_count, 1);
#ifdef EACH_BIT
    told("instance", 8u * sizeof model, 0);
#endif
    return 0;
}
