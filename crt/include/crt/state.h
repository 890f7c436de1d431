/* crt/state.h: what an instance keeps from run to run: saved and restored.
 * Knows no operator. Linked only by models that keep something. */
#ifndef CRT_STATE_H
#define CRT_STATE_H

#include "crt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As crt_forget of crt/abi.h; crt_graph_reset calls it. */
void crt_state_forget(const struct crt_graph *g);

/* Bytes that crt_state_save writes.
 *
 * Errors  CRT_ERR_NULL; CRT_ERR_STATE: the model keeps nothing */
int crt_state_bytes(const struct crt_graph *g);

/* Copies out all that g keeps, between two runs: to go on later from there,
 * on this instance or on another of the same build. Its checksum, the first
 * word, is written last. A save that a reset breaks off leaves what was there,
 * if it changed nothing yet, or what crt_state_restore refuses: save to two
 * places in turn where the last one must not be lost (docs/streams.md).
 *
 * Units   bytes: exactly crt_state_bytes
 * Owner   to is the caller's; any alignment. Its order of bytes is the core's
 * Errors  CRT_ERR_NULL, CRT_ERR_SIZE, CRT_ERR_STATE */
int crt_state_save(const struct crt_graph *g, void *to, uint32_t bytes);

/* Goes on from what was saved; results of g are forgotten, and rows that were
 * pushed to a run that is not over.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_SIZE; CRT_ERR_STATE: damaged, half written or
 *         saved by another build, nothing is changed */
int crt_state_restore(struct crt_graph *g, const void *from, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
