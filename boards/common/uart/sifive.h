/* sifive.h: the UART of SiFive's FE310.
 * Source: SiFive FE310-G002 Manual, chapter 18 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum {
    TXDATA = 0x00,
    RXDATA = 0x04,
    TXCTRL = 0x08,
    RXCTRL = 0x0C,
    IP = 0x14,
    DIV = 0x18
};
#define BUSY 0x80000000u /* TXDATA: full; RXDATA: empty */
#define SENT 1u          /* IP: fewer than one byte waits, as TXCTRL asks */

static void uart_init(void)
{
    UART(DIV) = BOARD_HZ / 115200u - 1u;
    UART(TXCTRL) = 1u << 16 | 1u;
    UART(RXCTRL) = 1;
}

static void uart_put(uint8_t byte)
{
    while (UART(TXDATA) & BUSY) {
    }
    UART(TXDATA) = byte;
    while (!(UART(IP) & SENT)) { /* a program that ends loses what waits */
    }
}

static int uart_get(void)
{
    const uint32_t word = UART(RXDATA);

    return word & BUSY ? -1 : (int)(word & 0xFFu);
}
