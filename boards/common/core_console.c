/* core_console.c: the console of a board that is simulated on its core alone:
 * through semihosting, for its own UART is not there. */
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
