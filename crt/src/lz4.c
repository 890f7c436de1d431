/* lz4.c: LZ4 blocks back to bytes. A block is never trusted: every length is
 * compared with what is left before it is used.
 * Knows no model and no image. */
#include "crt/lz4.h"
#include "crt/error.h"
#include "crt/port.h"

#define MIN_MATCH 4u /* bytes of the shortest copy */

/* A block that is being read, and where its bytes go. */
struct lz4 {
    const uint8_t *in;
    const uint8_t *in_end;
    uint8_t *out;
    uint8_t *out_start;
    uint8_t *out_end;
};

static uint32_t left_in(const struct lz4 *z)
{
    const ptrdiff_t left = z->in_end - z->in;

    return (uint32_t)left;
}

static uint32_t left_out(const struct lz4 *z)
{
    const ptrdiff_t left = z->out_end - z->out;

    return (uint32_t)left;
}

/* Reads a length, at most `most`, whose first 4 bits are `bits`. */
static int read_length(struct lz4 *z, uint32_t bits, uint32_t most,
                       uint32_t *length)
{
    uint32_t more = 0;

    if (bits > most) {
        return CRT_ERR_UNPACK;
    }
    if (bits == 15u) {
        more = 255;
    }
    while (more == 255u) {
        if (z->in == z->in_end) {
            return CRT_ERR_UNPACK;
        }
        more = *z->in++;
        if (more > most - bits) {
            return CRT_ERR_UNPACK;
        }
        bits += more;
    }
    *length = bits;
    return CRT_OK;
}

static int copy_literals(struct lz4 *z, uint32_t bits)
{
    uint32_t length = bits;
    int error = read_length(z, bits, left_out(z), &length);

    if (error != CRT_OK || length > left_in(z)) {
        return CRT_ERR_UNPACK;
    }
    crt_copy(z->out, z->in, length);
    z->in += length;
    z->out += length;
    return CRT_OK;
}

static int copy_match(struct lz4 *z, uint32_t bits)
{
    const uint8_t *from;
    uint32_t distance;
    uint32_t length = bits;
    ptrdiff_t behind;

    if (left_in(z) < 2u || left_out(z) < MIN_MATCH) {
        return CRT_ERR_UNPACK;
    }
    distance = (uint32_t)z->in[0] | (uint32_t)z->in[1] << 8;
    z->in += 2;
    behind = z->out - z->out_start;
    if (distance == 0u || distance > (uint32_t)behind) {
        return CRT_ERR_UNPACK;
    }
    if (read_length(z, bits, left_out(z) - MIN_MATCH, &length) != CRT_OK) {
        return CRT_ERR_UNPACK;
    }
    from = z->out - distance;
    for (length += MIN_MATCH; length > 0u; length--) {
        *z->out++ = *from++; /* may read what it has just written */
    }
    return CRT_OK;
}

int crt_lz4_unpack(const void *from, uint32_t from_bytes, void *to,
                   uint32_t to_bytes)
{
    struct lz4 z;
    int error = CRT_OK;

    if (from == NULL || to == NULL) {
        return CRT_ERR_NULL;
    }
    z.in = (const uint8_t *)from;
    z.in_end = z.in + from_bytes;
    z.out_start = (uint8_t *)to;
    z.out = z.out_start;
    z.out_end = z.out + to_bytes;
    while (error == CRT_OK) {
        uint32_t token;

        if (z.in == z.in_end) {
            return CRT_ERR_UNPACK;
        }
        token = *z.in++;
        error = copy_literals(&z, token >> 4);
        if (error == CRT_OK && z.in == z.in_end) {
            return z.out == z.out_end ? CRT_OK : CRT_ERR_UNPACK;
        }
        if (error == CRT_OK) {
            error = copy_match(&z, token & 15u);
        }
    }
    return error;
}
