/* pl011.h: Arm's PrimeCell UART.
 * Source: Arm DDI 0183, chapter 3 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum { DR = 0x00, FR = 0x18, IBRD = 0x24, FBRD = 0x28 };
enum { LCRH = 0x2C, CR = 0x30 };
enum { RX_EMPTY = 0x10, TX_FULL = 0x20 };

static void uart_init(void)
{
    /* in steps of 1/64 */
    const uint32_t rate = BOARD_HZ / (115200u / 4u);

    UART(IBRD) = rate >> 6;
    UART(FBRD) = rate & 63u;
    UART(LCRH) = 0x70; /* 8 bits, with FIFO */
    UART(CR) = 0x301;  /* on, both ways */
}

static void uart_put(uint8_t byte)
{
    while (UART(FR) & TX_FULL) {
    }
    UART(DR) = byte;
}

static int uart_get(void)
{
    return UART(FR) & RX_EMPTY ? -1 : (int)(UART(DR) & 0xFFu);
}
