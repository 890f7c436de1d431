/* board.c: riscv32-virt-v: its console. */
#include "crt/port.h"
#include "uart/ns16550.h"

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
