/* A recurrent network that saves its state after each frame, in two slots as
 * docs/streams.md has it: slots.h is the code of that page. */
#include "net.h"

#include "device.h"

#if defined ONE_SLOT

static uint8_t slots[NET_STATE_BYTES];

static void go_on(struct net *m)
{
    (void)net_restore_state(m, slots);
}

static int keep(const struct net *m)
{
    return net_save_state(m, slots);
}

#elif defined IN_FLASH

#define keep keep_in_place
#include "slots.h"
#undef keep

static struct slot buffer;

static int keep(const struct net *m)
{
    const int error = net_save_state(m, buffer.state);

    (void)keep_in_place; /* of the page; here it is by way of a buffer */
    if (error == CRT_OK) {
        buffer.number = slots[latest].number + 1u;
        buffer.again = ~buffer.number;
        latest = !latest;
        flash((uint32_t *)(void *)&slots[latest], (const void *)&buffer,
              sizeof buffer / 4u);
    }
    return error;
}

#else
#include "slots.h"
#endif

static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(NET_ARENA_ALIGN)));
static struct net model;
static uint8_t seen[NET_STATE_BYTES];

API int boot(void)
{
    const struct net_memory memory = NET_MEMORY(arena);
    const int error = net_init(&model, &memory);

    if (error == CRT_OK) {
        go_on(&model);
    }
    return error;
}

API int frame(const float *x)
{
    int error = net_set_frame(&model, x);

    if (error == CRT_OK) {
        error = net_run(&model);
    }
    return error == CRT_OK ? keep(&model) : error;
}

API const float *scores(void)
{
    return net_scores(&model);
}

API const uint8_t *state(void)
{
    return net_save_state(&model, seen) == CRT_OK ? seen : NULL;
}
