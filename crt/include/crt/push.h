/* crt/push.h: inputs that arrive in rows, as a camera or a microphone delivers
 * them, and are never held whole.
 * Knows no operator. Linked only by models with such inputs. */
#ifndef CRT_PUSH_H
#define CRT_PUSH_H

#include "crt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Passes the next rows of an input, and computes all that they allow; with the
 * last row the run is done and outputs are valid. Set other inputs before the
 * first row. A set, bind, reset or run in between ends the run: the next row
 * is the first again.
 *
 * Shapes  rows[count * bytes of a row], one after the other; a row is one of
 *         the first axis that is not the batch; pointers as for crt_graph_run
 * Owner   rows are copied; they lie outside of the memory that runs use
 * Errors  CRT_ERR_NULL; CRT_ERR_INDEX: not an input; CRT_ERR_PUSHED: not one
 *         that takes rows, or it was bound; CRT_ERR_ROWS: more than are left,
 *         or a counter in the arena was written over from outside, or
 *         another input's are wanted first (nothing of `rows` is then
 *         taken, or as many as crt_graph_rows_left says less than before);
 *         CRT_ERR_OVERLAP; otherwise as crt_graph_run */
int crt_graph_push_rows(struct crt_graph *g, void **pointers, uint32_t input,
                        const void *rows, uint32_t count);

/* The number of rows of an input that the network needs before it can go on; 0:
 * it needs another input. Never more than crt_graph_rows_left. Before the first
 * row it is 1 for every input, if the first layers need none.
 *
 * Errors  as crt_graph_push_rows, negative */
int crt_graph_rows_wanted(const struct crt_graph *g, uint32_t input);

/* The number of rows of an input missing in this run; all before it begins.
 *
 * Errors  as crt_graph_push_rows, negative */
int crt_graph_rows_left(const struct crt_graph *g, uint32_t input);

/* Pushes whole inputs, in the order in which the network needs their rows; a
 * run that was begun starts again.
 *
 * Shapes  inputs[input count]; only those that take rows are looked at
 * Errors  as crt_graph_push_rows; CRT_ERR_NULL: one is NULL */
int crt_graph_push_inputs(struct crt_graph *g, void **pointers,
                          const void *const *inputs);

/* Checks that all rows were pushed, so that the outputs are valid.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_INPUT_MISSING */
int crt_graph_pushed(const struct crt_graph *g);

#ifdef __cplusplus
}
#endif

#endif
