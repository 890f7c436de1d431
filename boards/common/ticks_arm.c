/* ticks_arm.c: SysTick as a 32-bit counter at the processor's clock. */
#include "board.h"

#include "crt/port.h"

#define SYST_CSR (*(volatile uint32_t *)0xE000E010u)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014u)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018u)
#define LARGEST  0xFFFFFFu /* SysTick has 24 bits and counts down */

static volatile uint32_t turns;

/* Not before it is asked for: its interrupt would be counted and timed. */
static void begin(void)
{
    SYST_RVR = LARGEST;
    SYST_CVR = 0;
    SYST_CSR = 7; /* on, with interrupt, at the processor's clock */
}

void board_ticked(void)
{
    turns++;
}

uint32_t crt_port_ticks(void)
{
    uint32_t before;
    uint32_t low;

    if ((SYST_CSR & 1u) == 0)
        begin();
    do { /* again where the counter turned in between */
        before = turns;
        low = (0u - SYST_CVR) & LARGEST; /* it interrupts at 0 */
    } while (before != turns);
    return before * (LARGEST + 1u) + low;
}
