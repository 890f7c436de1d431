/* count.h: instructions of one call on a simulated board, by step of the model.
 * Runs in the simulator, on the host; is told of every block of instructions
 * before it runs, and of reads of the step table. */
#ifndef COUNT_H
#define COUNT_H

#include <stdint.h>

enum { MOST_STEPS = 4096 };

/* What to count, in device addresses; the runtime's own code is apart.
 *
 * A step runs from the moment that the runtime reads its kernel's address,
 * the first field of its entry in the table, to the next such read. */
struct count {
    uint64_t begin; /* first block of the call */
    uint64_t end;   /* block that follows it */
    uint64_t runtime;
    uint64_t runtime_end;
    uint64_t table; /* of steps */
    uint64_t step_bytes;
    uint64_t step_count;
    uint64_t on; /* 1 within the call */
    uint64_t step;
    uint64_t of_runtime;
    uint64_t of_step[MOST_STEPS];
};

static inline void count_block(struct count *c, uint64_t address,
                               uint64_t instructions)
{
    uint64_t i;

    if (address == c->begin) { /* of several calls the last one stays */
        for (i = 0; i < c->step_count; i++)
            c->of_step[i] = 0;
        c->of_runtime = 0;
        c->on = 1;
        c->step = c->step_count;
    } else if (address == c->end) {
        c->on = 0;
    }
    if (!c->on)
        return;
    if (c->step == c->step_count ||
        (address >= c->runtime && address < c->runtime_end))
        c->of_runtime += instructions;
    else
        c->of_step[c->step] += instructions;
}

static inline void count_read(struct count *c, uint64_t address)
{
    const uint64_t at = address - c->table;

    if (c->on && at % c->step_bytes == 0 && at / c->step_bytes < c->step_count)
        c->step = at / c->step_bytes;
}

#endif
