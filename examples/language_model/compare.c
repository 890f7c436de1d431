/* compare.c: a prompt of 16 words and the next word, by the two halves and by
 * one graph, in turn; prints nanoseconds of each. Made and run by measure.py.
 */
#define _POSIX_C_SOURCE 199309L
#include "monolithic.h"
#include "output.h"
#include "recurrent.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define HIDDEN RECURRENT_X_LEN
#define STEPS  MONOLITHIC_X_DIM0
#define RUNS   400

static uint8_t arenas[3][MONOLITHIC_ARENA_BYTES] __attribute__((aligned(16)));
static struct recurrent recurrent;
static struct output output;
static struct monolithic monolithic;
static struct crt_params params;
static float states[2][HIDDEN];
static const float *embedding;

static int start(void)
{
    struct recurrent_memory r = RECURRENT_MEMORY(arenas[0]);
    struct output_memory o = OUTPUT_MEMORY(arenas[1]);
    struct monolithic_memory m = MONOLITHIC_MEMORY(arenas[2]);

    if (recurrent_init(&recurrent, &r) || output_init(&output, &o) ||
        monolithic_init(&monolithic, &m) || output_open_params(&params, NULL) ||
        output_load_params(&output, &params))
        return 1;
    embedding = (const float *)crt_graph_parameter(&output.graph, 0);
    return 0;
}

static uint32_t best(const float *logits)
{
    uint32_t i;
    uint32_t word = 1;

    for (i = 2; i < OUTPUT_LOGITS_LEN; i++) {
        if (logits[i] > logits[word])
            word = i;
    }
    return word;
}

static uint32_t by_halves(void)
{
    uint32_t t;

    memset(states[0], 0, sizeof states[0]);
    for (t = 0; t < STEPS; t++) {
        recurrent_bind_x(&recurrent, embedding + (t + 1) * HIDDEN);
        recurrent_bind_h(&recurrent, states[t % 2]);
        recurrent_bind_next(&recurrent, states[1 - t % 2]);
        recurrent_run(&recurrent);
    }
    output_bind_h(&output, states[STEPS % 2]);
    output_run(&output);
    return best(output_logits(&output));
}

static uint32_t by_one_graph(void)
{
    float *x = monolithic_x(&monolithic);
    uint32_t t;

    for (t = 0; t < STEPS; t++)
        memcpy(x + t * HIDDEN, embedding + (t + 1) * HIDDEN, sizeof states[0]);
    memset(monolithic_h(&monolithic), 0, sizeof states[0]);
    monolithic_run(&monolithic);
    return best(monolithic_logits(&monolithic) +
                (STEPS - 1) * OUTPUT_LOGITS_LEN);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The shortest of all runs of each. */
int main(void)
{
    double least[2] = {1e9, 1e9};
    uint32_t words[2] = {0, 0};
    int run;

    if (start() != 0)
        return 1;
    for (run = 0; run < RUNS; run++) {
        double begin = seconds();
        double middle;
        double end;

        words[0] = by_halves();
        middle = seconds();
        words[1] = by_one_graph();
        end = seconds();
        least[0] = middle - begin < least[0] ? middle - begin : least[0];
        least[1] = end - middle < least[1] ? end - middle : least[1];
    }
    printf("%.0f %.0f\n", least[0] * 1e9, least[1] * 1e9);
    return words[0] != words[1];
}
