/* crt/state.h: saves and restores the state that an instance keeps from run to
 * run. Knows no operator. Linked only by models with state. */
#ifndef CRT_STATE_H
#define CRT_STATE_H

#include "crt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets state to its first value; crt_graph_reset calls it. */
void crt_state_forget(const struct crt_graph *g);

/* Bytes that crt_state_save writes.
 *
 * Errors  CRT_ERR_NULL; CRT_ERR_STATE: the model has no state */
int crt_state_bytes(const struct crt_graph *g);

/* Copies the state of g, between two runs, to continue later from there, on
 * this instance or another of the same build. Its checksum, the first word, is
 * written last. If a reset interrupts a save, the old state is still there, if
 * nothing was changed yet, or crt_state_restore refuses it: save to two places
 * in turn if the last state must not be lost (docs/streams.md).
 *
 * Units   bytes: exactly crt_state_bytes
 * Owner   to is the caller's; any alignment. Its order of bytes is the core's
 * Errors  CRT_ERR_NULL, CRT_ERR_SIZE, CRT_ERR_STATE */
int crt_state_save(const struct crt_graph *g, void *to, uint32_t bytes);

/* Continues from saved state; forgets the results of g, and rows that were
 * pushed to an unfinished run.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_SIZE; CRT_ERR_STATE: damaged, half written or
 *         saved by another build, nothing is changed */
int crt_state_restore(struct crt_graph *g, const void *from, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
