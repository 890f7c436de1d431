/* The least that a firmware does with a model: init, set, run, get. Linked
 * with its own entry point to measure what crt adds. */
#include "model.h"

static int8_t arena[ARENA_BYTES] __attribute__((aligned(16)));
static int8_t kept[KEPT_BYTES] __attribute__((aligned(16)));
static struct crt_graph graph;
static uint32_t fresh[CRT_FRESH_WORDS(2)];
static void *base[7];
int8_t data[24];
int result;

void _start(void);

void _start(void)
{
    struct crt_region regions[2] = {{arena, ARENA_BYTES}, {kept, KEPT_BYTES}};
    void *pointers[6];

    result = crt_graph_init(&graph, &model, base, fresh, regions, 2);
    result |= crt_graph_set_input(&graph, 0, data, 24);
    result |= crt_graph_set_input(&graph, 1, data, 3);
    result |= crt_graph_run(&graph, pointers);
    result |= crt_graph_get_output(&graph, 0, data, 12);
    for (;;) {
    }
}
