/* cmsdk.h: the UART of Arm's Cortex-M System Design Kit.
 * Source: Arm DDI 0479, section 4.3 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum { DATA = 0x00, STATE = 0x04, CTRL = 0x08, BAUDDIV = 0x10 };
enum { TX_FULL = 1, RX_FULL = 2, TX_ENABLE = 1, RX_ENABLE = 2 };

static void uart_init(void)
{
    UART(BAUDDIV) = BOARD_HZ / 115200u;
    UART(CTRL) = TX_ENABLE | RX_ENABLE;
}

static void uart_put(uint8_t byte)
{
    while (UART(STATE) & TX_FULL) {
    }
    UART(DATA) = byte;
}

static int uart_get(void)
{
    return UART(STATE) & RX_FULL ? (int)(UART(DATA) & 0xFFu) : -1;
}
