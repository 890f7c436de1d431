/* crt/lockstep.h: runs stages in lock step, for models that have some.
 * Knows no operator. */
#ifndef CRT_LOCKSTEP_H
#define CRT_LOCKSTEP_H

#include "crt/slots.h"

#ifdef __cplusplus
extern "C" {
#endif

CRT_C_BODIES

/* Where the bands are counted that each step of a stage has computed. */
static inline uint16_t *crt_lockstep_counters(const struct crt_graph *g)
{
    return (uint16_t *)(void *)((uint8_t *)g->base[0] + g->model->counters);
}

/* The step to go on with so that `step` can: itself, if all rows that its next
 * band reads are made, or the first maker of missing rows, or whom that one
 * waits for. Makers' links follow their readers', so one look from *from on is
 * enough; *from becomes the link that led to the maker, NULL if none did. */
static inline uint32_t crt_lockstep_maker(const struct crt_link **from,
                                          const uint16_t *done, uint32_t step)
{
    const struct crt_link *link = *from;
    int32_t rows;
    int32_t made;

    *from = NULL;
    for (; link->reader >= step; link++) {
        if (link->reader != step) {
            continue;
        }
        rows = (int32_t)done[step - 1u] * (int32_t)link->stride + link->ahead;
        if (rows > (int32_t)link->rows) {
            rows = (int32_t)link->rows;
        }
        made = (int32_t)done[link->maker - 1u] * (int32_t)link->made;
        if (made < rows) {
            step = link->maker;
            *from = link;
        }
    }
    return step;
}

CRT_C_BODIES_END

/* Computes all bands of all steps of a stage, each as late as its readers
 * allow: the rows between two steps then need the fewest bytes.
 *
 * Shapes  pointers as for crt_graph_run
 * Time    a look at the stage's links before each band
 * Errors  CRT_ERR_STOPPED: failed_step tells where; CRT_ERR_ROWS: a counter
 *         in the arena is of no row, so it was written over from outside */
int crt_lockstep(struct crt_graph *g, void **pointers,
                 const struct crt_stage *stage);

/* Continues from the bands that the counters say are computed, until all are,
 * or until a row of a step without a kernel is needed: then returns the step's
 * number in the stage, from 1.
 *
 * Errors  as crt_lockstep, negative */
int crt_lockstep_on(struct crt_graph *g, void **pointers,
                    const struct crt_stage *stage);

#ifdef __cplusplus
}
#endif

#endif
