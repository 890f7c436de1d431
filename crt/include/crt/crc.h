/* crt/crc.h: CRC-32, the checksum of parameter images and of frames.
 * Knows nothing of what the bytes are. */
#ifndef CRT_CRC_H
#define CRT_CRC_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CRC-32 of zlib and Ethernet (polynomial 0xEDB88320, reflected).
 *
 * Shapes  data[bytes]; a long piece may be given in parts: `crc` is 0 for the
 *         first and the result so far for each next one
 * Thread  re-entrant
 * Time    2 table look-ups a byte, in a table of 64 bytes of flash */
uint32_t crt_crc32(uint32_t crc, const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
