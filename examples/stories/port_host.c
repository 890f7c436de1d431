/* port_host.c: the console of main.c on a PC: standard input and output. */
#include "crt/port.h"

#include <stdio.h>

void crt_port_init(void)
{
}

void crt_port_put(uint8_t byte)
{
    (void)putchar(byte);
    (void)fflush(stdout);
}

int crt_port_get(void)
{
    const int byte = getchar();

    return byte != EOF ? byte : 4; /* Ctrl-D */
}
