/* board.c: apollo4p-evb: its console goes through the debugger, which each
 * of these boards has */
#include "crt/port.h"
#include "uart/semihosting.h"

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
