/* board.c: mps2-an386: its console. */
#include "crt/port.h"
#include "uart/cmsdk.h"

void crt_port_init(void)
{
    uart_init();
}

void crt_port_put(uint8_t byte)
{
    uart_put(byte);
}

int crt_port_get(void)
{
    return uart_get();
}
