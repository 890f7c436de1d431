/* second_riscv.c: from the first instruction to board_second_work() on a second
 * RV32, whose memory the first has prepared. */
#include "second.h"

extern uint32_t board_second_stack_top[];

volatile uint32_t board_second_faulted; /* a fault ends the program instead */

void board_second_reset(void);

__asm__(".section .text.board_second_reset,\"ax\",@progbits\n"
        ".global board_second_reset\n"
        ".type board_second_reset, @function\n"
        "board_second_reset:\n"
        ".option push\n"
        ".option norelax\n"
        "    la gp, __global_pointer$\n"
        ".option pop\n"
        "    la t0, board_trap\n"
        "    csrw mtvec, t0\n"
        "    call board_second_work\n"
        ".size board_second_reset, .-board_second_reset\n"
        ".text\n");

typedef void vector(void);

static vector *const vectors[2] = {(vector *)(uintptr_t)board_second_stack_top,
                                   board_second_reset};

void board_second_begin(void)
{
    board_second_release(vectors);
}
