/* stm32v2.h: the USART of STM32F7, L4, H7 and U5.
 * Source: ST RM0432, chapters 50 and 51 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
#ifndef UART_STEPS
#define UART_STEPS 1u /* of the clock in a step of the rate: 256 of LPUART */
#endif
enum { CR1 = 0x00, BRR = 0x0C, ISR = 0x1C, ICR = 0x20, RDR = 0x24, TDR = 0x28 };
enum { RX_FULL = 0x20, TX_EMPTY = 0x80, OVERRUN = 0x08 };
enum { ENABLE = 0x01, RX_ENABLE = 0x04, TX_ENABLE = 0x08 };

static void uart_init(void)
{
    UART(BRR) = (uint32_t)((uint64_t)BOARD_HZ * UART_STEPS / 115200u);
    UART(CR1) = ENABLE | TX_ENABLE | RX_ENABLE;
}

static void uart_put(uint8_t byte)
{
    while (!(UART(ISR) & TX_EMPTY)) {
    }
    UART(TDR) = byte;
}

static int uart_get(void)
{
    const uint32_t state = UART(ISR);

    if (state & OVERRUN) /* what came too soon is lost, but not what comes */
        UART(ICR) = OVERRUN;
    return state & RX_FULL ? (int)(UART(RDR) & 0xFFu) : -1;
}
