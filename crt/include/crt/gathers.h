/* crt/gathers.h: vectors of which each lane is read from a place of its own, or
 * only the first are read; with Helium (MVE) an instruction or two, elsewhere a
 * loop. Knows no model. */
#ifndef CRT_GATHERS_H
#define CRT_GATHERS_H

#include "crt/vector.h"

CRT_C_BODIES

/* So many bytes, and zeros. */
CRT_INLINE crt_int8x16 crt_first16(const int8_t *from, int32_t bytes)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrbq_z_s8(from, vctp8q((uint32_t)bytes));
#else
    crt_int8x16 v = {{0}};
    CRT_COPY(v.lane, from, (uint32_t)bytes);
    return v;
#endif
}

/* The words so many bytes behind `from`. */
CRT_INLINE crt_int32x4 crt_gather4(const int32_t *from, crt_int32x4 bytes)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrwq_gather_offset_s32(from, vreinterpretq_u32_s32(bytes));
#else
    for (int i = 0; i < 4; i++) {
        bytes.lane[i] = from[bytes.lane[i] / 4];
    }
    return bytes;
#endif
}

/* Each byte's entry in a table of 256, which begins with the entry of -128. */
CRT_INLINE crt_int8x16 crt_table16(const int8_t *table, crt_int8x16 x)
{
#if defined(__ARM_FEATURE_MVE)
    const uint8x16_t places = vreinterpretq_u8_s8(x);
    return vldrbq_gather_offset_s8(table, veorq_u8(places, vdupq_n_u8(128)));
#else
    for (int i = 0; i < 16; i++) {
        x.lane[i] = table[x.lane[i] + 128];
    }
    return x;
#endif
}

CRT_C_BODIES_END

#endif
