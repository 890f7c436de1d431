/* start_xtensa.c: from reset to main() on Xtensa without windows (LX106):
 * stack, exceptions, memory.
 * Knows no board: addresses come from the linker script. */
#include "board.h"

#include "crt/port.h"

#include <stdint.h>

extern uint32_t board_data_start[], board_data_end[], board_data_load[];
extern uint32_t board_bss_start[], board_bss_end[];

void board_reset(void);
void board_fault(void);
int main(void);

/* The exceptions that programs here can meet all end them: of the user's and
 * the kernel's mode, and one within another. */
__asm__(".section .vectors,\"ax\",@progbits\n"
        ".global board_entry\n"
        ".type board_entry, @function\n"
        ".literal_position\n"
        ".literal .board_vectors_at, board_vectors\n"
        ".literal .board_stack_at, board_stack_top\n"
        ".balign 4\n"
        "board_entry:\n"
        "    l32r a2, .board_vectors_at\n"
        "    wsr.vecbase a2\n"
        "    movi a2, 0x20\n"
        "    wsr.ps a2\n"
        "    rsync\n"
        "    l32r a1, .board_stack_at\n"
        "    call0 board_reset\n"
        ".size board_entry, .-board_entry\n"
        ".balign 256\n"
        "board_vectors:\n"
        "    .org board_vectors + 0x30\n"
        "    call0 board_fault\n"
        "    .org board_vectors + 0x50\n"
        "    call0 board_fault\n"
        "    .org board_vectors + 0x70\n"
        "    call0 board_fault\n"
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
        ".balign 4\n"
        ".global board_call\n"
        ".global board_returned\n"
        ".type board_call, @function\n"
        "board_call:\n"
        "    addi a1, a1, -16\n"
        "    s32i a0, a1, 0\n"
        "    mov a4, a2\n"
        "    mov a2, a3\n"
        "    callx0 a4\n"
        "board_returned:\n"
        "    l32i a0, a1, 0\n"
        "    addi a1, a1, 16\n"
        "    ret\n"
        ".size board_call, .-board_call\n"
        ".text\n");
