/* second_sse200.c: the two cores of Arm's SSE-200 (Musca, AN521): the start of
 * the second, and the message unit by which they wake each other.
 * Source: Arm SSE-200 Technical Reference Manual, secure addresses. */
#include "second.h"

#define INITSVTOR1 (*(volatile uint32_t *)0x50021114u)
#define CPUWAIT    (*(volatile uint32_t *)0x50021118u)
/* MHU 0: of each core, 16 bytes apart */
#define MHU_SET(core)   (*(volatile uint32_t *)(0x50003004u + 16u * (core)))
#define MHU_CLEAR(core) (*(volatile uint32_t *)(0x50003008u + 16u * (core)))
#define MHU_INTERRUPT   (1u << 6)
#define ICPR            (*(volatile uint32_t *)0xE000E280u)
#define SCR             (*(volatile uint32_t *)0xE000ED10u)
#define SEVONPEND       (1u << 4) /* interrupts that are off wake from WFE */

void board_second_release(const void *vectors)
{
    INITSVTOR1 = (uint32_t)(uintptr_t)vectors;
    CPUWAIT &= ~2u;
}

void board_second_ring(int second)
{
    __asm__ volatile("dsb" ::: "memory");
    MHU_SET((uint32_t)second) = 1u;
}

BOARD_WAITING void board_second_rest(int second)
{
    SCR |= SEVONPEND;
    __asm__ volatile("wfe" ::: "memory");
    MHU_CLEAR((uint32_t)second) = 1u;
    ICPR = MHU_INTERRUPT;
    __asm__ volatile("dsb" ::: "memory");
}
