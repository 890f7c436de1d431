/* crt/lz4.h: LZ4 blocks, the packing of weights. Allocates nothing, keeps no
 * state. Knows no model and no image. */
#ifndef CRT_LZ4_H
#define CRT_LZ4_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unpacks one LZ4 block (the block format, without a frame).
 *
 * Shapes  from[from_bytes], which may hold anything; to[to_bytes]
 * Thread  re-entrant
 * Errors  CRT_ERR_NULL; CRT_ERR_UNPACK for a damaged block, or one of another
 *         size than to_bytes
 * Source  LZ4 block format description, 2022 */
int crt_lz4_unpack(const void *from, uint32_t from_bytes, void *to,
                   uint32_t to_bytes);

#ifdef __cplusplus
}
#endif

#endif
