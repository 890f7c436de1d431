/* mlperf_port.c: crt/port.h over standard input and output of this machine, and
 * its clock, for examples/mlperf_tiny without a board. */
#define _POSIX_C_SOURCE 200809L
#include "crt/port.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void crt_port_init(void)
{
}

void crt_port_put(uint8_t byte)
{
    if (write(1, &byte, 1) != 1)
        exit(3);
}

int crt_port_get(void)
{
    struct pollfd in = {0, POLLIN, 0};
    uint8_t byte;

    if (poll(&in, 1, 1) <= 0)
        return -1;
    if (read(0, &byte, 1) != 1)
        exit(0);
    return byte;
}

uint32_t crt_port_ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000u +
                      (uint64_t)now.tv_nsec / 1000u);
}

void crt_port_exit(int code)
{
    exit(code);
}
