/* main.c: a network on the two cores of mps2-an521: the first, without FPU and
 * DSP instructions, hosts the graph; the second computes what was placed on
 * device 1. Prints the self-test and the first outputs. */
#include "net.h"
#include "second.h"

#include <stdio.h>

#define ALIGNED __attribute__((aligned(NET_ARENA_ALIGN)))

static uint8_t arena[NET_ARENA_BYTES] ALIGNED;
static uint8_t arena_of_second[NET_DEVICE_1_BYTES] ALIGNED;
static void *pointers_of_second[NET_POINTERS];
static struct net model;

int main(void)
{
    static const struct crt_device devices[NET_DEVICE_COUNT] = {
        {NULL, NULL}, {&board_second, NULL}};
    const struct net_memory memory = NET_MEMORY(arena, arena_of_second);
    int error = net_init(&model, &memory);
    uint32_t i;

    if (error == CRT_OK) {
        board_second_start(pointers_of_second);
        error = net_set_devices(&model, devices);
    }
    if (error == CRT_OK)
        error = net_selftest(&model);
    printf("two cores: self-test: %s\n", crt_strerror(error));
    for (i = 0; error == CRT_OK && i < net_model.output_count; i++) {
        const struct crt_tensor *info = crt_graph_output_info(&model.graph, i);
        const int8_t *values = crt_graph_output(&model.graph, i);
        uint32_t k;

        printf("%s:", info->name);
        for (k = 0; k < info->bytes && k < 12u; k++)
            printf(" %d", values[k]);
        printf("\n");
    }
    return error != CRT_OK;
}
