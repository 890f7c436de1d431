/* start_arm.c: from reset to main() on every Cortex-M: vectors, FPU, memory.
 * Knows no board: addresses come from the linker script. */
#include "board.h"

#include "crt/port.h"

#include <stdint.h>

extern uint32_t board_data_start[], board_data_end[], board_data_load[];
extern uint32_t board_bss_start[], board_bss_end[], board_stack_top[];

void board_reset(void);
void board_fault(void);
void board_hard_fault(void);
void board_fault_in(uint32_t *frame);
int main(void);

#define CPACR (*(volatile uint32_t *)0xE000ED88u)
#define CCR   (*(volatile uint32_t *)0xE000ED14u)

typedef void vector(void);
static vector *const vectors[16];

#define BREAKPOINT 0xBEABu /* bkpt 0xAB */

void board_reset(void)
{
    const uint32_t *from = board_data_load;
    uint32_t *to;

#ifdef __ARM_FP
    CPACR |= 0xFu << 20; /* coprocessors 10 and 11 are the FPU and MVE */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
#if __ARM_ARCH >= 8 && defined(__ARM_FEATURE_MVE)
    CCR |= 1u << 19; /* low-overhead loops keep their state */
#endif
    for (to = board_data_start; to < board_data_end; to++)
        *to = *from++;
    for (to = board_bss_start; to < board_bss_end; to++)
        *to = 0;
    crt_port_init();
    crt_port_exit(main());
}

void board_fault(void)
{
    crt_port_exit(BOARD_FAULT);
}

/* What a call of semihosting ends in where nobody answers: it is passed over,
 * and has failed. Other faults end the program. frame: r0 to r3, r12, lr, pc */
void board_fault_in(uint32_t *frame)
{
    const uint32_t pc = frame[6];

    if (pc >= (uintptr_t)vectors && pc < (uintptr_t)board_data_load &&
        *(const uint16_t *)(uintptr_t)pc == BREAKPOINT) {
        frame[0] = 0xFFFFFFFFu;
        frame[6] = pc + 2u;
        return;
    }
    board_fault();
}

__asm__(".syntax unified\n"
        ".thumb\n"
        ".section .text.board_hard_fault,\"ax\",%progbits\n"
        ".balign 4\n"
        ".global board_hard_fault\n"
        ".type board_hard_fault, %function\n"
        ".thumb_func\n"
        "board_hard_fault:\n"
        "    mrs r0, msp\n"
        "    ldr r1, =board_fault_in\n"
        "    bx r1\n"
        "    .ltorg\n"
        ".size board_hard_fault, .-board_hard_fault\n"
        ".text\n");

/* The label board_returned begins a block of its own, so that simulators,
 * which count whole blocks, stop right there. */
__asm__(".syntax unified\n"
        ".thumb\n"
        ".section .text.board_call,\"ax\",%progbits\n"
        ".balign 4\n"
        ".global board_call\n"
        ".global board_returned\n"
        ".type board_call, %function\n"
        ".thumb_func\n"
        "board_call:\n"
        "    push {r4, lr}\n"
        "    mov r4, r0\n"
        "    mov r0, r1\n"
        "    blx r4\n"
        "board_returned:\n"
        "    pop {r4, pc}\n"
        ".size board_call, .-board_call\n"
        ".text\n");

__attribute__((section(".vectors"), used)) static vector *const vectors[16] = {
    (vector *)(uintptr_t)board_stack_top,
    board_reset,
    board_fault,      /* NMI */
    board_hard_fault, /* HardFault */
    board_fault,      /* MemManage */
    board_fault,      /* BusFault */
    board_fault,      /* UsageFault */
    board_fault,
    0,
    0,
    0,
    board_fault, /* SVCall */
    board_fault,
    0,
    board_fault, /* PendSV */
    board_ticked,
};
