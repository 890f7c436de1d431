/* A network whose rows are pushed, one after the other, and whose weights are
 * unpacked in each run. */
#include "net.h"

#include "device.h"

static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(NET_ARENA_ALIGN)));
static struct net model;

API int boot(void)
{
    const struct net_memory memory = NET_MEMORY(arena);

    return net_init(&model, &memory);
}

/* All rows of an image. */
API int infer(const int8_t *image)
{
    uint32_t row;
    int error = CRT_OK;

    for (row = 0; error == CRT_OK && row < NET_IMAGE_ROWS; row++) {
        error = net_push_rows(&model, NET_IMAGE_INPUT,
                              image + row * NET_IMAGE_ROW_LEN, 1);
    }
    return error == CRT_OK ? net_run(&model) : error;
}

API const int8_t *scores(void)
{
    return net_scores(&model);
}
