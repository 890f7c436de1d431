/* board.c: stm32f746g-disco: its console is USART1 at PA9 and PB7, which
 * the ST-LINK passes on. Source: ST UM1907, RM0385 sections 5, 6 */
#include "crt/port.h"
#include "uart/stm32v2.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x40023800u
#define GPIOA        0x40020000u
#define GPIOB        0x40020400u

void crt_port_init(void)
{
    REG(RCC + 0x30u) |= 3u;      /* AHB1ENR: ports A and B */
    REG(RCC + 0x44u) |= 1u << 4; /* APB2ENR: USART1 */
    REG(GPIOA + 0x24u) = (REG(GPIOA + 0x24u) & ~0xF0u) | 0x70u;
    REG(GPIOB + 0x20u) = (REG(GPIOB + 0x20u) & ~(15u << 28)) | 7u << 28;
    REG(GPIOA) = (REG(GPIOA) & ~(3u << 18)) | 2u << 18; /* alternate */
    REG(GPIOB) = (REG(GPIOB) & ~(3u << 14)) | 2u << 14;
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
