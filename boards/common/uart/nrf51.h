/* nrf51.h: the UART of Nordic's nRF51: tasks to start, events that tell.
 * Source: nRF51 Series Reference Manual, chapter 29 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum { STARTRX = 0x000, STARTTX = 0x008, RXDRDY = 0x108, TXDRDY = 0x11C };
enum { ENABLE = 0x500, RXD = 0x518, TXD = 0x51C, BAUDRATE = 0x524 };

static void uart_init(void)
{
    UART(BAUDRATE) = 0x01D7E000u; /* 115200 */
    UART(ENABLE) = 4;
    UART(STARTTX) = 1;
    UART(STARTRX) = 1;
}

static void uart_put(uint8_t byte)
{
    UART(TXDRDY) = 0;
    UART(TXD) = byte;
    while (UART(TXDRDY) == 0) {
    }
}

static int uart_get(void)
{
    if (UART(RXDRDY) == 0)
        return -1;
    UART(RXDRDY) = 0;
    return (int)(UART(RXD) & 0xFFu);
}
