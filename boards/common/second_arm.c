/* second_arm.c: from reset to board_second_work() on a second Cortex-M, whose
 * memory the first has prepared. */
#include "second.h"

#define CPACR (*(volatile uint32_t *)0xE000ED88u)

extern uint32_t board_second_stack_top[];

volatile uint32_t board_second_faulted;

void board_second_reset(void);

void board_second_reset(void)
{
    CPACR |= 0xFu << 20; /* its FPU; without one, of no effect */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    board_second_work();
}

BOARD_WAITING static void second_fault(void)
{
    board_second_faulted = 1;
    board_second_ring(0);
    for (;;)
        board_second_rest(1);
}

typedef void vector(void);

/* Only faults: nothing interrupts the second core. */
__attribute__((aligned(128))) static vector *const vectors[16] = {
    (vector *)(uintptr_t)board_second_stack_top,
    board_second_reset,
    second_fault,
    second_fault,
    second_fault,
    second_fault,
    second_fault,
    second_fault,
};

void board_second_begin(void)
{
    board_second_release(vectors);
}
