/* What the tests call on an emulated Cortex-M4 that runs a network "net" whose
 * input "image" comes in rows; all memory is where the tests say. */
#include "net.h"

#define API __attribute__((used, section(".text.runner")))

API int begin(struct net *m, void *arena)
{
    const struct net_memory memory = {{arena, NET_ARENA_BYTES}};

    return net_init(m, &memory);
}

API int push(struct net *m, const int8_t *rows, uint32_t count)
{
    return net_push_rows(m, NET_IMAGE_INPUT, rows, count);
}

API int reset(struct net *m)
{
    return net_reset(m);
}

API int done(struct net *m)
{
    return net_run(m);
}

API const int8_t *result(const struct net *m)
{
    return net_scores(m);
}

API uint32_t size_of(uint32_t what)
{
    const uint32_t sizes[] = {sizeof(struct net), NET_ARENA_BYTES,
                              net_model.counters, 2u * net_model.step_count};

    return sizes[what];
}
