/* ns16550.h: the UART of PCs, one byte a register.
 * Source: Texas Instruments TL16C550D, section 8 */
#include <stdint.h>

#define UART(offset) (*(volatile uint8_t *)(BOARD_UART + (offset)))
enum { DATA = 0, FCR = 2, LCR = 3, LSR = 5 };
enum { RX_FULL = 0x01, TX_EMPTY = 0x20 };

static void uart_init(void)
{
    UART(LCR) = 3; /* 8 bits */
    UART(FCR) = 1; /* with FIFO */
}

static void uart_put(uint8_t byte)
{
    while (!(UART(LSR) & TX_EMPTY)) {
    }
    UART(DATA) = byte;
}

static int uart_get(void)
{
    return UART(LSR) & RX_FULL ? (int)UART(DATA) : -1;
}
