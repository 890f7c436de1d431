/* board.c: longan-nano: its console is USART0 at PA9 and PA10.
 * Source: GigaDevice GD32VF103 User Manual, sections 5, 7, 16 */
#include "crt/port.h"
#include "uart/stm32.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x40021000u
#define GPIOA        0x40010800u

void crt_port_init(void)
{
    REG(RCC + 0x18u) |= 1u << 2 | 1u << 14; /* APB2ENR: port A, USART1 */
    REG(GPIOA + 4u) = (REG(GPIOA + 4u) & ~0xFF0u) | 0x4B0u; /* out, in */
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
