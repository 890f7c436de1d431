/* board.c: nrf52840-dk: its console is UART0 at P0.06 and P0.08, which
 * the J-Link passes on. Source: Nordic nRF52840 DK Hardware Guide */
#include "crt/port.h"
#include "uart/nrf51.h"

/* PSELTXD and PSELRXD of the UART */
#define PINS_TX UART(0x50C)
#define PINS_RX UART(0x514)

void crt_port_init(void)
{
    PINS_TX = 6;
    PINS_RX = 8;
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
