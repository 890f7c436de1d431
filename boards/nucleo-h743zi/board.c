/* board.c: nucleo-h743zi: its console is USART3 at PD8 and PD9, which the
 * ST-LINK passes on. Source: ST UM2407, RM0433 sections 8, 11 */
#include "crt/port.h"
#include "uart/stm32v2.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x58024400u
#define GPIOD        0x58020C00u

void crt_port_init(void)
{
    REG(RCC + 0xE0u) |= 1u << 3;  /* AHB4ENR: port D */
    REG(RCC + 0xE8u) |= 1u << 18; /* APB1LENR: USART3 */
    REG(GPIOD + 0x24u) = (REG(GPIOD + 0x24u) & ~0xFFu) | 0x77u;
    REG(GPIOD) = (REG(GPIOD) & ~(15u << 16)) | 10u << 16; /* alternate */
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
