/* runner.c: what a simulator calls, by symbol, to run any model of an image;
 * and the functions of string.h that compilers may call. Knows no model. */
#include "crt/graph.h"

#define RUNNER_API __attribute__((used, section(".text.runner")))

static struct crt_graph graph;
static void *base[64];
static uint32_t fresh[2];
static void *pointers[1024];
static union {
    uint8_t bytes[1 << 20];
    int64_t aligned[2];
} arena __attribute__((aligned(16)));

RUNNER_API int runner_init(const struct crt_model *model)
{
    const struct crt_region region = {arena.bytes, sizeof arena.bytes};

    return crt_graph_init(&graph, model, base, fresh, &region, 1);
}

RUNNER_API void *runner_input(uint32_t index)
{
    return crt_graph_input(&graph, index);
}

RUNNER_API int runner_run(void)
{
    return crt_graph_run(&graph, pointers);
}

RUNNER_API const void *runner_output(uint32_t index)
{
    return crt_graph_output(&graph, index);
}

void *memset(void *to, int value, size_t bytes)
{
    volatile uint8_t *at = (volatile uint8_t *)to;

    while (bytes-- > 0)
        *at++ = (uint8_t)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    volatile uint8_t *at = (volatile uint8_t *)to;
    const uint8_t *source = (const uint8_t *)from;

    while (bytes-- > 0)
        *at++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    volatile uint8_t *at = (volatile uint8_t *)to;
    const uint8_t *source = (const uint8_t *)from;

    if ((uintptr_t)to <= (uintptr_t)from)
        return memcpy(to, from, bytes);
    while (bytes-- > 0)
        at[bytes] = source[bytes];
    return to;
}
