/* board.c: nano-33-ble: its console is UART0 at P1.03 and P1.10, the
 * pins TX and RX. Source: Arduino Nano 33 BLE schematic */
#include "crt/port.h"
#include "uart/nrf51.h"

/* PSELTXD and PSELRXD of the UART */
#define PINS_TX UART(0x50C)
#define PINS_RX UART(0x514)

void crt_port_init(void)
{
    PINS_TX = 35;
    PINS_RX = 42;
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
