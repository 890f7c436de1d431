/* avr.h: the USART of AVR.
 * Source: Microchip DS40002211, section 22.10 */
#include <stdint.h>

#define UART(offset) (*(volatile uint8_t *)(BOARD_UART + (offset)))
enum { UCSRA = 0, UCSRB = 1, UCSRC = 2, UBRRL = 4, UBRRH = 5, UDR = 6 };
enum { RX_FULL = 0x80, TX_EMPTY = 0x20, TWICE = 0x02 };
enum { RX_ENABLE = 0x10, TX_ENABLE = 0x08, BITS8 = 0x06 };

static void uart_init(void)
{
    UART(UCSRA) = TWICE;
    UART(UBRRH) = 0;
    UART(UBRRL) = (uint8_t)((BOARD_HZ / 4u / 115200u - 1u) / 2u);
    UART(UCSRC) = BITS8;
    UART(UCSRB) = RX_ENABLE | TX_ENABLE;
}

static void uart_put(uint8_t byte)
{
    while (!(UART(UCSRA) & TX_EMPTY)) {
    }
    UART(UDR) = byte;
}

static int uart_get(void)
{
    return UART(UCSRA) & RX_FULL ? (int)UART(UDR) : -1;
}
