/* board.c: arduino-mega2560: its console is USART0, which the USB chip passes
 * on. Source: Microchip DS40002211, section 22 */
#include "crt/port.h"
#include "uart/avr.h"

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
