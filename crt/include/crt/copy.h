/* crt/copy.h: weights that are copied from flash to faster memory.
 * Knows no model. */
#ifndef CRT_COPY_H
#define CRT_COPY_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies a constant that lies in flash as it is: the crt_unpack of models whose
 * hot weights have a place in RAM.
 *
 * Shapes  from[from_bytes]; to[to_bytes]
 * Thread  re-entrant
 * Errors  CRT_ERR_UNPACK for unequal sizes; nothing is then written */
int crt_copy_weights(const void *from, uint32_t from_bytes, void *to,
                     uint32_t to_bytes);

#ifdef __cplusplus
}
#endif

#endif
