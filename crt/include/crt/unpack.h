/* crt/unpack.h: packed parameters into memory of the caller's: LZ4 (crt/lz4.h),
 * or a codec of yours. Knows no model; allocates nothing, keeps no state. */
#ifndef CRT_UNPACK_H
#define CRT_UNPACK_H

#include "crt/params.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unpacks what a codec of yours has packed. What is in `from` may be hostile
 * even in an image that was verified: a checksum is not a signature.
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

/* How much memory crt_params_unpack_all needs for an image; 0: for none. Each
 * payload that is packed starts at a multiple of CRT_UNPACK_ALIGN there.
 *
 * Units   bytes */
uint32_t crt_params_unpacked_bytes(const struct crt_params *p);

/* Unpacks everything that is packed in an image, once for all instances; from
 * then on crt_params_get finds it in `memory`, as if it had never been packed.
 *
 * Units   bytes: of memory, crt_params_unpacked_bytes or more
 * Owner   memory is the caller's, must be aligned to CRT_UNPACK_ALIGN and stay
 *         as long as p is used
 * Thread  nothing else may use p meanwhile
 * Errors  CRT_ERR_NULL, CRT_ERR_SIZE, CRT_ERR_ALIGN, CRT_ERR_CODEC,
 *         CRT_ERR_UNPACK; p is then as before */
int crt_params_unpack_all(struct crt_params *p, void *memory, uint32_t bytes,
                          crt_codec *codec, void *context);

#ifdef __cplusplus
}
#endif

#endif
