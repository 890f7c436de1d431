/* ticks_riscv.c: the cycle counter of RV32. */
#include "board.h"

#include "crt/port.h"

uint32_t crt_port_ticks(void)
{
    uint32_t cycles;

    __asm__ volatile("csrr %0, mcycle" : "=r"(cycles));
    return cycles;
}
