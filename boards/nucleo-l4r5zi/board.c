/* board.c: nucleo-l4r5zi: its console is LPUART1 at PG7 and PG8, which
 * the ST-LINK passes on. Source: ST UM2179, RM0432 sections 5, 6, 8 */
#include "crt/port.h"
#define UART_STEPS 256u /* of LPUART1 in a bit */
#include "uart/stm32v2.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define RCC          0x40021000u
#define PWR_CR2      0x40007004u
#define GPIOG        0x48001800u

void crt_port_init(void)
{
    REG(RCC + 0x58u) |= 1u << 28; /* APB1ENR1: the power controller */
    REG(PWR_CR2) |= 1u << 9;      /* IOSV: port G is supplied */
    REG(RCC + 0x4Cu) |= 1u << 6;  /* AHB2ENR: port G */
    REG(RCC + 0x5Cu) |= 1u;       /* APB1ENR2: LPUART1 */
    REG(GPIOG + 0x20u) = (REG(GPIOG + 0x20u) & ~(15u << 28)) | 8u << 28;
    REG(GPIOG + 0x24u) = (REG(GPIOG + 0x24u) & ~15u) | 8u;
    REG(GPIOG) = (REG(GPIOG) & ~(15u << 14)) | 10u << 14; /* both: alternate */
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
