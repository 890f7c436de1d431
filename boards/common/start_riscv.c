/* start_riscv.c: from reset to main() on RV32: stack, traps, memory.
 * Knows no board: addresses come from the linker script. */
#include "board.h"

#include "crt/port.h"

#include <stdint.h>

extern uint32_t board_data_start[], board_data_end[], board_data_load[];
extern uint32_t board_bss_start[], board_bss_end[];

void board_reset(void);
void board_fault(void);
int main(void);

/* mstatus.FS and .VS: units that are off after reset, and trap then. */
#if defined(__riscv_vector) || defined(__riscv_flen)
#define START_UNITS                                                            \
    "    li t0, 0x2200\n"                                                      \
    "    csrs mstatus, t0\n"
#else
#define START_UNITS
#endif

__asm__(".section .vectors,\"ax\",@progbits\n"
        ".global board_entry\n"
        ".type board_entry, @function\n"
        "board_entry:\n"
        ".option push\n"
        ".option norelax\n"
        "    la gp, __global_pointer$\n"
        ".option pop\n"
        "    la sp, board_stack_top\n"
        "    la t0, board_trap\n"
        "    csrw mtvec, t0\n" START_UNITS "    call board_reset\n"
        ".balign 4\n"
        ".global board_trap\n"
        ".type board_trap, @function\n"
        "board_trap:\n"
        "    call board_fault\n"
        ".size board_entry, .-board_entry\n"
        ".text\n");

void board_reset(void)
{
    const uint32_t *from = board_data_load;
    uint32_t *to;

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

/* The label board_returned begins a block of its own, so that simulators,
 * which count whole blocks, stop right there. */
__asm__(".section .text.board_call,\"ax\",@progbits\n"
        ".global board_call\n"
        ".global board_returned\n"
        ".type board_call, @function\n"
        "board_call:\n"
        "    addi sp, sp, -16\n"
        "    sw ra, 12(sp)\n"
        "    mv t0, a0\n"
        "    mv a0, a1\n"
        "    jalr t0\n"
        "board_returned:\n"
        "    lw ra, 12(sp)\n"
        "    addi sp, sp, 16\n"
        "    ret\n"
        ".size board_call, .-board_call\n"
        ".text\n");
