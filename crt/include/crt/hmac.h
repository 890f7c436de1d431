/* crt/hmac.h: HMAC-SHA-256, the tag of frames on a line that has a key:
 * docs/rpc-protocol.md. Knows no frame. Linked only where a program names it:
 * hardware that computes the same may take its place. */
#ifndef CRT_HMAC_H
#define CRT_HMAC_H

#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a key and of a result. */
#define CRT_HMAC_BYTES 32u

/* The HMAC-SHA-256 (RFC 2104, FIPS 180-4) of `head` and, behind it, `data`.
 *
 * Shapes  key[CRT_HMAC_BYTES], head[head_bytes], data[bytes],
 *         result[CRT_HMAC_BYTES]; result may be key
 * Units   head_bytes + bytes: at most 2^28
 * Thread  re-entrant
 * Time    the same for any bytes of one length: no branch and no address
 *         depends on them; 5 + (head_bytes + bytes + 8) / 64 blocks; about 300
 *         bytes of stack */
void crt_hmac_sha256(const uint8_t *key, const uint8_t *head,
                     uint32_t head_bytes, const uint8_t *data, uint32_t bytes,
                     uint8_t *result);

#ifdef __cplusplus
}
#endif

#endif
