/* sifive.h: the UART of SiFive's FE310.
 * Source: SiFive FE310-G002 Manual, chapter 18 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum { TXDATA = 0x00, RXDATA = 0x04, TXCTRL = 0x08, RXCTRL = 0x0C, DIV = 0x18 };
#define BUSY 0x80000000u /* TXDATA: full; RXDATA: empty */

static void uart_init(void)
{
    UART(DIV) = BOARD_HZ / 115200u - 1u;
    UART(TXCTRL) = 1;
    UART(RXCTRL) = 1;
}

static void uart_put(uint8_t byte)
{
    while (UART(TXDATA) & BUSY) {
    }
    UART(TXDATA) = byte;
}

static int uart_get(void)
{
    const uint32_t word = UART(RXDATA);

    return word & BUSY ? -1 : (int)(word & 0xFFu);
}
