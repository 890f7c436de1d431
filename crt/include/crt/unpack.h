/* crt/unpack.h: packed parameters into memory of the caller's: LZ4, or a codec
 * of yours. Knows no model; allocates nothing, keeps no state. */
#ifndef CRT_UNPACK_H
#define CRT_UNPACK_H

#include "crt/params.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unpacks what a codec of yours has packed. What is in `from` may be hostile
 * even in an image that was verified: a checksum is no signature.
 *
 * Shapes  from[from_bytes]; to[to_bytes], all of it to be written
 * Errors  non-zero makes crt_params_unpack return CRT_ERR_UNPACK */
typedef int crt_codec(void *context, uint16_t number, const void *from,
                      uint32_t from_bytes, void *to, uint32_t to_bytes);

/* Puts a parameter, unpacked, where the caller wants it; also copies one that
 * is not packed.
 *
 * Units   bytes: exactly param->bytes
 * Owner   to is the caller's and does not overlap the image; codec may be
 *         NULL, its context is handed through
 * Thread  re-entrant
 * Errors  CRT_ERR_NULL, CRT_ERR_SIZE, CRT_ERR_CODEC; CRT_ERR_UNPACK: `to` then
 *         holds nothing of use. Nothing outside to[0 .. bytes - 1] is written
 * Time    of LZ4: that of copying, plus about 30 instructions a match */
int crt_params_unpack(const struct crt_param *param, void *to, uint32_t bytes,
                      crt_codec *codec, void *context);

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
