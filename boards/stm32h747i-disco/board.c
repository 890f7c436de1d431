/* board.c: stm32h747i-disco: its console is USART1 at PA9 and PA10, which
 * the ST-LINK passes on. Source: ST UM2411, RM0399 sections 9, 12 */
#include "crt/port.h"
#include "uart/stm32v2.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x58024400u
#define GPIOA        0x58020000u

void crt_port_init(void)
{
    REG(RCC + 0xE0u) |= 1u;      /* AHB4ENR: port A */
    REG(RCC + 0xF0u) |= 1u << 4; /* APB2ENR: USART1 */
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
