/* board.c: b-u585i-iot02a: its console is USART1 at PA9 and PA10, which the
 * ST-LINK passes on. Source: ST UM2839, RM0456 sections 11, 13 */
#include "crt/port.h"
#include "uart/stm32v2.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x46020C00u
#define GPIOA        0x42020000u

void crt_port_init(void)
{
    REG(RCC + 0x8Cu) |= 1u;       /* AHB2ENR1: port A */
    REG(RCC + 0xA4u) |= 1u << 14; /* APB2ENR: USART1 */
    REG(GPIOA + 0x24u) = (REG(GPIOA + 0x24u) & ~0xFF0u) | 0x770u;
    REG(GPIOA) = (REG(GPIOA) & ~(15u << 18)) | 10u << 18; /* alternate */
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
