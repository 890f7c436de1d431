/* stm32.h: the USART of STM32F1 to F4.
 * Source: ST RM0090, chapter 30 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum { SR = 0x00, DR = 0x04, BRR = 0x08, CR1 = 0x0C };
enum { RX_FULL = 0x20, TX_EMPTY = 0x80 };
enum { RX_ENABLE = 0x0004, TX_ENABLE = 0x0008, ENABLE = 0x2000 };

static void uart_init(void)
{
    UART(BRR) = BOARD_HZ / 115200u;
    UART(CR1) = ENABLE | TX_ENABLE | RX_ENABLE;
}

static void uart_put(uint8_t byte)
{
    while (!(UART(SR) & TX_EMPTY)) {
    }
    UART(DR) = byte;
}

static int uart_get(void)
{
    return UART(SR) & RX_FULL ? (int)(UART(DR) & 0xFFu) : -1;
}
