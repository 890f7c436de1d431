/* crt/lockstep.h: runs stages in lock step, for models that have some.
 * Knows no operator. */
#ifndef CRT_LOCKSTEP_H
#define CRT_LOCKSTEP_H

#include "crt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

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
