/* cycles.h: blocks of instructions as a simulator runs them, and their
 * estimated cycles. */
#ifndef CYCLES_H
#define CYCLES_H

#include <stdint.h>

/* Of a byte of struct costs; the rest is cycles, see timings.py. */
enum { COST_WIDE = 0x40, COST_SINGLE = 0x80, COST_CYCLES = 0x3F };

/* What the core's instructions take.
 *
 * of  each halfword of the code, if an instruction begins there; bytes 0:
 * nothing is known of this core */
struct costs {
    const uint8_t *of;
    uint64_t at; /* address of the code */
    uint64_t bytes;
    uint64_t taken; /* on top, where the next one is not executed next */
};

/* What a block has, `cycles` without a jump to it.
 *
 * first   it begins with an instruction of COST_SINGLE
 * single  it ends with one
 * taken   cycles of a jump */
struct block {
    uint64_t address;
    uint64_t bytes;
    uint64_t instructions;
    uint64_t cycles;
    uint64_t first;
    uint64_t single;
    uint64_t taken;
};

/* Estimates the cycles of a block's instructions. */
static inline void count_cycles(const struct costs *costs, struct block *block)
{
    const uint64_t at = block->address - costs->at;
    const uint64_t bytes = block->bytes;
    uint64_t single = 0;
    uint64_t cycles = 0;
    uint64_t i;

    block->cycles = block->first = block->single = 0;
    block->taken = costs->taken;
    if (at >= costs->bytes || bytes > costs->bytes - at)
        return;
    block->first = (costs->of[at / 2u] & COST_SINGLE) != 0;
    for (i = at; i < at + bytes;) {
        const unsigned cost = costs->of[i / 2u];

        cycles += cost & COST_CYCLES;
        if (single && (cost & COST_SINGLE) != 0)
            cycles--;
        single = (cost & COST_SINGLE) != 0;
        i += (cost & COST_WIDE) != 0 ? 4u : 2u;
    }
    block->cycles = cycles;
    block->single = single;
}

#endif
