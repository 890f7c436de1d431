/* crt/cores.h: one run of a model on several equal cores, which share memory.
 * Knows no operator and no operating system; linked only where it is used. */
#ifndef CRT_CORES_H
#define CRT_CORES_H

#include "crt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each call of a kernel is cut into slices, one for each core. The first core
 * runs the model: before each call it tells the others which one it is, and
 * after its own slice it waits for theirs. No lock, no queue, no interrupt: a
 * core writes only words of its own, and all look at them. */

/* The most cores that a run may have. */
#define CRT_CORES_MAX 4u

/* How a model is cut, const, in flash.
 *
 * args  step_count * cores of them: what the kernel of a step finds in a[] on
 *       each core, so that it computes that core's slice; NULL: the core has
 *       none. A step of which the first core has none is the first core's
 *       alone, and whole */
struct crt_slices {
    const int32_t *const *args;
    uint32_t cores;
};

/* Called over and over by a core that waits for another: `core` is its own
 * number. Returns 0 to wait on, for example after a yield to other tasks;
 * anything else gives up. NULL instead of it: waits for ever. */
typedef int crt_cores_wait(void *context, uint32_t core);

/* What the cores of one instance tell each other. Zero it or leave it static,
 * then set `wait` and `context`, before any core uses it; read no other member.
 *
 * Owner   the caller; in memory that all cores see alike: without caches, or
 *         with caches that hardware keeps coherent. So is the arena */
struct crt_cores {
    crt_cores_wait *wait;
    void *context;
    /* of the first core: the number of this call, then what it is */
    volatile uint32_t call;
    uint32_t step; /* CRT_CORES_OVER: none, the run has ended */
    uint32_t image;
    uint32_t band;
    int32_t error; /* how it has ended */
    uint32_t lost; /* a core was given up while it computed */
    /* of each other core: the number of the call that it waits for, with the
     * upper bit the other way round, so that zeros say that it is not there */
    volatile uint32_t ready[CRT_CORES_MAX - 1u];
};

#define CRT_CORES_OVER UINT32_MAX

/* Runs the model once, as crt_graph_run does, with the same bits. Call it on
 * the first core; the others are in crt_cores_work, or come to it soon. With a
 * hook (crt_graph_set_hook) the first core computes all by itself.
 *
 * Shapes  pointers[model->pointer_count], of the first core's own stack; the
 *         model has no devices
 * Errors  as crt_graph_run. CRT_ERR_CORE: `wait` gave up. If a core never came,
 *         nothing was touched, and the next run may be the right one. If one
 *         stopped on its way, the result is lost; it may still write its slice:
 *         the next run first waits for it, then asks for inputs again. Without
 *         that core, crt_graph_run computes all on one */
int crt_cores_run(struct crt_graph *g, struct crt_cores *cores,
                  const struct crt_slices *slices, void **pointers);

/* Takes part in one run, as core 1, 2, ...; returns when it has ended. Call it
 * in a loop. It may be called before the first core runs, but not before the
 * model is initialised.
 *
 * Shapes  pointers[model->pointer_count], of this core's own stack
 * Errors  CRT_ERR_NULL; CRT_ERR_INDEX: there is no such core; CRT_ERR_CORE:
 *         `wait` gave up; those of the run */
int crt_cores_work(const struct crt_graph *g, struct crt_cores *cores,
                   const struct crt_slices *slices, void **pointers,
                   uint32_t core);

#ifdef __cplusplus
}
#endif

#endif
