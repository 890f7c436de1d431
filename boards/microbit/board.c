/* board.c: microbit: its console, at the pins that the interface chip passes
 * on. Source: micro:bit V1 schematic; nRF51 Series Reference Manual, chapter 29
 */
#include "crt/port.h"
#include "uart/nrf51.h"

/* PSELTXD and PSELRXD of the UART */
#define PINS_TX UART(0x50C)
#define PINS_RX UART(0x514)

void crt_port_init(void)
{
    PINS_TX = 24;
    PINS_RX = 25;
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
