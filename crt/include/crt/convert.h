/* crt/convert.h: inputs that are converted when they are set, for example
 * float32 that is quantised: the instance holds the result alone.
 * Models that have such inputs refer to it; firmware has no use for it. */
#ifndef CRT_CONVERT_H
#define CRT_CONVERT_H

#include "crt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row pointers that a conversion needs, at most. */
#define CRT_CONVERT_POINTERS 8

/* Converts an input to its home. The stage that does it has a number: the first
 * stages are those of the inputs with CRT_TENSOR_CONVERTED, in their order.
 *
 * Shapes  data: input->bytes of them, not needed afterwards
 * Errors  CRT_ERR_ALIGN: data must be a multiple of input->align;
 *         CRT_ERR_OVERLAP: it is in memory of g; CRT_ERR_STOPPED by a hook */
int crt_convert_input(struct crt_graph *g, const struct crt_tensor *input,
                      const void *data);

/* Advances of a model (crt_model.advance) whose first stages convert inputs,
 * without stages in lock step, and with: does nothing for an input that was
 * set, converts one that is bound.
 *
 * Errors  as crt_lockstep */
int crt_convert_advance(struct crt_graph *g, void **pointers,
                        const struct crt_stage *stage);
int crt_convert_lockstep(struct crt_graph *g, void **pointers,
                         const struct crt_stage *stage);

#ifdef __cplusplus
}
#endif

#endif
