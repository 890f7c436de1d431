/* ticks_xtensa.c: the cycle counter of Xtensa. */
#include "board.h"

#include "crt/port.h"

uint32_t crt_port_ticks(void)
{
    uint32_t cycles;

    __asm__ volatile("rsr.ccount %0" : "=r"(cycles));
    return cycles;
}
