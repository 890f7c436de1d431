/* main.c: goes on writing what its arguments begin, a word at a time.
 *
 * The recurrent half runs for every word, the output layer, which is much
 * larger, only where a word is wanted. Words go in as rows of the very matrix
 * that the output layer reads: bound, not copied. So does the state, which two
 * buffers hold in turn. */
#include "output.h"
#include "recurrent.h"
#include "vocabulary.h"

#include <stdio.h>
#include <string.h>

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(16)))
#else
#define ALIGNED /* place the arenas at multiples of 16 */
#endif

#define HIDDEN RECURRENT_X_LEN
#define SAID   12

static uint8_t recurrent_arena[RECURRENT_ARENA_BYTES] ALIGNED;
static uint8_t output_arena[OUTPUT_ARENA_BYTES] ALIGNED;
static struct recurrent recurrent;
static struct output output;
static struct crt_params params;
static float states[2][HIDDEN];
static const float *embedding;

static int start(void)
{
    const struct recurrent_memory r = RECURRENT_MEMORY(recurrent_arena);
    const struct output_memory o = OUTPUT_MEMORY(output_arena);
    int error = recurrent_init(&recurrent, &r);
    int index;

    if (error == CRT_OK)
        error = output_init(&output, &o);
    if (error == CRT_OK)
        error = output_open_params(&params, NULL);
    if (error == CRT_OK)
        error = output_load_params(&output, &params);
    if (error != CRT_OK)
        return error;
    index = crt_graph_find_parameter(&output.graph, "embedding");
    if (index < 0)
        return index;
    embedding =
        (const float *)crt_graph_parameter(&output.graph, (uint32_t)index);
    return CRT_OK;
}

/* One more word; the state moves to the other buffer. */
static int hear(uint32_t word, uint32_t *now)
{
    int error = recurrent_bind_x(&recurrent, embedding + word * HIDDEN);

    if (error == CRT_OK)
        error = recurrent_bind_h(&recurrent, states[*now]);
    *now = 1u - *now;
    if (error == CRT_OK)
        error = recurrent_bind_next(&recurrent, states[*now]);
    if (error == CRT_OK)
        error = recurrent_run(&recurrent);
    return error;
}

/* The likeliest word to follow. */
static int say(uint32_t now, uint32_t *word)
{
    const float *logits;
    uint32_t i;
    int error = output_bind_h(&output, states[now]);

    if (error == CRT_OK)
        error = output_run(&output);
    if (error != CRT_OK)
        return error;
    logits = output_logits(&output);
    *word = 1; /* 0 is any word that it does not know: never said */
    for (i = 2; i < OUTPUT_LOGITS_LEN; i++) {
        if (logits[i] > logits[*word])
            *word = i;
    }
    return CRT_OK;
}

static uint32_t number_of(const char *word)
{
    uint32_t i;

    for (i = 0; i < OUTPUT_LOGITS_LEN; i++) {
        if (strcmp(vocabulary[i], word) == 0)
            return i;
    }
    return 0; /* a word that it does not know */
}

int main(int count, char **words)
{
    uint32_t now = 0;
    uint32_t word = 0;
    int i;
    int error = start();

    for (i = 1; i < count && error == CRT_OK; i++)
        error = hear(number_of(words[i]), &now);
    for (i = 0; i < SAID && error == CRT_OK; i++) {
        error = say(now, &word);
        if (error == CRT_OK)
            error = hear(word, &now);
        printf("%s%s", i > 0 ? " " : "", vocabulary[word]);
    }
    printf("\n");
    if (error != CRT_OK)
        fprintf(stderr, "%s\n", crt_strerror(error));
    return error != CRT_OK;
}
