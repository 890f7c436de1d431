/* Weights in flash: a factory's, and a newer image that is written while the
 * device works. One instance loads them, another shares them and runs. */
#include "net.h"

#include "device.h"

static uint32_t kept[(NET_PARAMS_BYTES + 3u) / 4u] __attribute__((aligned(16)));
static uint8_t arena[2][NET_ARENA_BYTES] __attribute__((aligned(16)));
static struct net one;
static struct net two;
static struct crt_params params;

/* The newer image, or what the factory has written. */
API int boot(void)
{
    const struct net_memory first = NET_MEMORY(arena[0]);
    const struct net_memory second = NET_MEMORY(arena[1]);
    int error = crt_params_verify(&params, kept, sizeof kept);

    if (error != CRT_OK) {
        error = net_open_params(&params, NULL);
    }
    if (error == CRT_OK) {
        error = net_init(&one, &first);
    }
    if (error == CRT_OK) {
        error = net_init(&two, &second);
    }
    if (error == CRT_OK) {
        error = net_load_params(&one, &params);
    }
    if (error == CRT_OK) {
        error = net_share_params(&two, &one);
    }
    return error == CRT_OK ? net_release_params(&one) : error;
}

API int infer(const int8_t *image)
{
    const int error = net_set_image(&two, image);

    return error == CRT_OK ? net_run(&two) : error;
}

API const int8_t *scores(void)
{
    return net_scores(&two);
}

/* Erases, and writes. */
API int update(const uint32_t *image)
{
    flash(kept, image, sizeof kept / 4u);
    return 0;
}

/* Writes over what is there, as in FRAM. */
API int overwrite(const uint32_t *image)
{
    volatile uint32_t *to = kept;
    uint32_t i;

    for (i = 0; i < sizeof kept / 4u; i++) {
        to[i] = image[i];
    }
    return 0;
}

API const void *factory(void)
{
    return net_open_params(&params, NULL) == CRT_OK ? params.image : NULL;
}
