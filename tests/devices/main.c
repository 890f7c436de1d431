/* main.c: the generated tree of a model for two devices, on the device that the
 * CPU cannot look into: its self-test, without and with an instance. */
#include "net.h"

#include <stdio.h>

struct device;
extern const struct crt_device_api device_api;
struct device *device_new(void);
void *device_allocate(struct device *d, uint32_t bytes);
void device_free(struct device *d);

static uint64_t arena[(NET_ARENA_BYTES + 15u) / 8u];
static struct net model;

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
    printf("%s\n", crt_strerror(error));
    device_free(made);
    return error != CRT_OK;
}
