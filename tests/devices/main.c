/* main.c: the generated tree of a model for two devices, on the device that the
 * CPU cannot look into: its self-test, without and with devices, and a run
 * without an instance. */
#include "net.h"

#include <stdio.h>
#include <string.h>

struct device;
extern const struct crt_device_api device_api;
struct device *device_new(void);
void *device_allocate(struct device *d, uint32_t bytes);
void device_free(struct device *d);

static uint64_t arena[(NET_ARENA_BYTES + 15u) / 8u];
static struct net model;

/* The same scores from an instance and without one. */
static int same(const struct net_memory *memory,
                const struct crt_device *devices)
{
    static const int8_t image[NET_IMAGE_LEN] = {1, 2, 3};
    int8_t one[NET_SCORES_LEN] = {0};
    int8_t two[NET_SCORES_LEN] = {1};
    const struct net_inputs in = {image};
    const struct net_inputs none = {NULL};
    const struct net_outputs out = {two};
    const struct net_outputs unwanted = {NULL};
    int error = net_set_image(&model, image);

    if (error == CRT_OK)
        error = net_run(&model);
    if (error == CRT_OK)
        error = crt_graph_get_output(&model.graph, 0, one, sizeof one);
    if (error == CRT_OK)
        error = net_predict(memory, devices, &in, &out);
    if (error == CRT_OK)
        error = net_predict(memory, devices, &in, &unwanted);
    if (net_predict(memory, devices, &none, &out) != CRT_ERR_INPUT_MISSING ||
        memcmp(one, two, sizeof one) != 0)
        return CRT_ERR_SELFTEST;
    return error;
}

int main(void)
{
    struct device *made = device_new();
    struct crt_device devices[NET_DEVICE_COUNT] = {{NULL, NULL}};
    struct net_memory memory;
    struct net bare;
    int error;

    devices[1].api = &device_api;
    devices[1].context = made;
    memory.arena.ptr = (void *)(((uintptr_t)arena + 15u) & ~(uintptr_t)15u);
    memory.arena.bytes = NET_ARENA_BYTES;
    memory.device_1.ptr = device_allocate(made, NET_DEVICE_1_BYTES);
    memory.device_1.bytes = NET_DEVICE_1_BYTES;
    error = net_init(&bare, &memory);
    if (error == CRT_OK && net_selftest(&bare) != CRT_ERR_DEVICE)
        error = CRT_ERR_SELFTEST; /* it has no devices yet */
    if (error == CRT_OK)
        error = net_init(&model, &memory);
    if (error == CRT_OK)
        error = net_set_devices(&model, devices);
    if (error == CRT_OK)
        error = net_selftest(&model);
    if (error == CRT_OK)
        error = same(&memory, devices);
    printf("%s\n", crt_strerror(error));
    device_free(made);
    return error != CRT_OK;
}
