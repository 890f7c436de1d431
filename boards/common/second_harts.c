/* second_harts.c: the second hart of QEMU's RISC-V machine, which begins at the
 * same instruction as the first: it waits until it is given its vectors.
 * Source: QEMU, hw/riscv/virt.c; SiFive FU540-C000 Manual, 9 (CLINT). */
#include "second.h"

/* Reached before board_entry, by both. Each hart's own software interrupt stays
 * pending, and is never taken: WFI then lets the other run, and goes on. */
__asm__(".section .vectors_harts,\"ax\",@progbits\n"
        ".global board_harts\n"
        ".type board_harts, @function\n"
        "board_harts:\n"
        "    csrr t0, mhartid\n"
        "    li t1, 0x02000000\n"
        "    slli t2, t0, 2\n"
        "    add t1, t1, t2\n"
        "    li t2, 1\n"
        "    sw t2, 0(t1)\n"
        "    csrsi mie, 8\n"
        "    bnez t0, 1f\n"
        "    j board_entry\n"
        "1:  wfi\n"
        "    la t0, board_second_vectors\n"
        "    lw t0, 0(t0)\n"
        "    beqz t0, 1b\n"
        "    fence rw, rw\n"
        "    lw sp, 0(t0)\n"
        "    lw t0, 4(t0)\n"
        "    jr t0\n"
        ".size board_harts, .-board_harts\n"
        ".text\n");

const void *volatile board_second_vectors;

void board_second_release(const void *vectors)
{
    __asm__ volatile("fence rw, rw" ::: "memory");
    board_second_vectors = vectors;
}

void board_second_ring(int second)
{
    (void)second; /* WFI ends by itself */
}

BOARD_WAITING void board_second_rest(int second)
{
    (void)second;
    __asm__ volatile("wfi" ::: "memory");
}
