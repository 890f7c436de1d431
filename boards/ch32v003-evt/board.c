/* board.c: ch32v003-evt: its console is USART1 at PD5 and PD6.
 * Source: WCH CH32V003 Reference Manual, sections 3, 7, 12 */
#include "crt/port.h"
#include "uart/stm32.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x40021000u
#define GPIOD        0x40011400u

void crt_port_init(void)
{
    REG(RCC + 0x04u) &= ~0xF0u; /* CFGR0: HCLK is SYSCLK, not divided */
    REG(RCC + 0x18u) |= 1u << 5 | 1u << 14; /* APB2ENR: port D, USART1 */
    REG(GPIOD) = (REG(GPIOD) & ~(0xFFu << 20)) | 0x4Bu << 20; /* out, in */
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
