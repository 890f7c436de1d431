/* count.h: instructions of one inference on a simulated board, by step of the
 * model.
 * Runs in the simulator, on the host; is told of every block of instructions
 * before it runs, and of reads of the step table. */
#ifndef COUNT_H
#define COUNT_H

#include "cycles.h"

enum { MOST_STEPS = 4096, MOST_JOBS = 4096, CORES = 2 };
enum { MOST_MEETINGS = 4 }; /* CRT_CORES_MAX */

/* One core.
 *
 * step  that it works on; step_count: none
 * cycles  estimated; 0 where nothing is known of the core
 * time  instructions since the call began, with those that it has waited for
 *       the other core's */
struct core {
    uint64_t step;
    uint64_t waits;
    uint64_t time;
    uint64_t of_runtime;
    uint64_t of_step[MOST_STEPS];
    uint64_t next;   /* address behind its last block */
    uint64_t single; /* that ended with an instruction of COST_SINGLE */
    uint64_t cycles_of_runtime;
    uint64_t cycles_of_step[MOST_STEPS];
    /* when it last looked at what another core has to say: time, of_runtime,
     * cycles_of_runtime */
    uint64_t looked[3];
};

/* What to count, in device addresses; the runtime's own code is apart.
 *
 * A step runs from the moment that the runtime reads its kernel's address,
 * the first field of its entry in the table, to the next such read. A second
 * core works on the step that the first gave the job for. What cores do while
 * they wait is not counted.
 *
 * Equal cores say by words in memory how far they are (crt/cores.h). A core
 * that finds such a word goes on at the time when it was written, if that is
 * later: so the first core's time is the sum, over the sections between
 * meetings, of what the slower core has executed. */
struct count {
    uint64_t begin; /* first block of a call */
    uint64_t
        last;     /* of the last call of an inference, which may be the only one
                   */
    uint64_t end; /* block that follows a call */
    uint64_t runtime;
    uint64_t runtime_end;
    uint64_t table; /* of steps */
    uint64_t step_bytes;
    uint64_t step_count;
    uint64_t waiting; /* code of cores that wait for the other */
    uint64_t waiting_end;
    uint64_t ring; /* by which the first core gives a job, the second is done */
    uint64_t call; /* address of what the first core says to equal cores */
    uint64_t ready; /* of what each of the others says */
    uint64_t ready_end;
    uint64_t others; /* code with memcpy, by which some compilers read an
                        entry of the table */
    uint64_t others_end;
    uint64_t on;    /* 1 within a call */
    uint64_t begun; /* 1 from the first call of an inference to the last */
    uint64_t given;
    uint64_t taken;
    uint64_t done_at; /* time of the second core when its last job was done */
    struct core core[CORES];
    uint64_t job_at[MOST_JOBS]; /* time of the first core when it was given */
    uint64_t job_step[MOST_JOBS];
    uint64_t said_at[MOST_MEETINGS]; /* time of the first core, of the others */
};

/* Of several inferences the last one stays. */
static inline void count_anew(struct count *c)
{
    uint64_t i;
    uint64_t k;

    for (k = 0; k < CORES; k++) {
        for (i = 0; i < c->step_count; i++)
            c->core[k].of_step[i] = c->core[k].cycles_of_step[i] = 0;
        c->core[k].of_runtime = c->core[k].cycles_of_runtime = 0;
        c->core[k].time = 0;
        for (i = 0; i < 3u; i++)
            c->core[k].looked[i] = 0;
    }
    for (k = 0; k < MOST_MEETINGS; k++)
        c->said_at[k] = 0;
    c->given = 0;
    c->taken = 0;
    c->done_at = 0;
}

static inline void count_begin(struct count *c, uint64_t address)
{
    uint64_t k;

    if (!c->begun)
        count_anew(c);
    c->begun = address != c->last;
    c->on = 1;
    for (k = 0; k < CORES; k++)
        c->core[k].step = c->step_count;
}

static inline void count_later(struct core *core, uint64_t time)
{
    if (core->time < time)
        core->time = time;
}

/* A core goes on after it has waited: the first when all jobs are done, the
 * second when there is one. */
static inline void count_woken(struct count *c, uint64_t k)
{
    c->core[k].waits = 0;
    if (k == 0) {
        count_later(&c->core[0], c->done_at);
    } else {
        count_later(&c->core[1], c->job_at[c->taken % MOST_JOBS]);
        c->core[1].step = c->job_step[c->taken % MOST_JOBS];
        c->taken++;
    }
}

static inline void count_rings(struct count *c, uint64_t k)
{
    if (k == 0) {
        c->job_at[c->given % MOST_JOBS] = c->core[0].time;
        c->job_step[c->given % MOST_JOBS] = c->core[0].step;
        c->given++;
    } else {
        c->done_at = c->core[1].time;
    }
}

/* k: the core, from 0 */
static inline void count_block(struct count *c, uint64_t k,
                               const struct block *block)
{
    struct core *core = &c->core[k];
    const uint64_t address = block->address;
    const uint64_t instructions = block->instructions;
    const int follows = core->next == address;
    uint64_t cycles = block->cycles + (follows ? 0 : block->taken);

    /* simulators end blocks where they like: at the end of a page, too */
    if (follows && core->single && block->first)
        cycles--;
    core->next = address + block->bytes;
    core->single = block->single;

    if (address == c->begin || address == c->last)
        count_begin(c, address);
    else if (address == c->end)
        c->on = 0;
    if (address >= c->waiting && address < c->waiting_end) {
        core->waits = 1;
        return;
    }
    if (!c->on)
        return;
    if (core->waits && c->ring != 0)
        count_woken(c, k);
    if (address == c->ring)
        count_rings(c, k);
    core->time += instructions;
    if (core->step == c->step_count ||
        (address >= c->runtime && address < c->runtime_end)) {
        core->of_runtime += instructions;
        core->cycles_of_runtime += cycles;
    } else {
        core->of_step[core->step] += instructions;
        core->cycles_of_step[core->step] += cycles;
    }
}

/* A core looks at a word by which equal cores meet, or writes it. Having waited
 * it looks again: what it executed in between is taken back. */
static inline void count_meets(struct count *c, uint64_t k, uint64_t address,
                               int writes)
{
    const int calls = address == c->call;
    const uint64_t which = calls ? 0 : 1u + (address - c->ready) / 4u;
    struct core *core = &c->core[k];

    if (!c->on || c->call == 0 || which >= MOST_MEETINGS ||
        (!calls && (address < c->ready || address >= c->ready_end)))
        return;
    if (writes) {
        c->said_at[which] = core->time;
        return;
    }
    if (core->waits) {
        core->time = core->looked[0];
        core->of_runtime = core->looked[1];
        core->cycles_of_runtime = core->looked[2];
    }
    core->waits = 0;
    core->looked[0] = core->time;
    core->looked[1] = core->of_runtime;
    core->looked[2] = core->cycles_of_runtime;
    count_later(core, c->said_at[which]);
}

static inline void count_read(struct count *c, uint64_t k, uint64_t address)
{
    const uint64_t at = address - c->table;

    if (c->on && at % c->step_bytes == 0 && at / c->step_bytes < c->step_count)
        c->core[k].step = at / c->step_bytes;
}

#endif
