/* crt/extremes.h: the greater and the less of numbers that lie side by side, in
 * words and in vectors; with DSP instructions or Helium (MVE) one or two
 * instructions, elsewhere comparisons. Knows no model.
 * MISRA 10.1, 20.7, in this file: they work on bits */
#ifndef CRT_EXTREMES_H
#define CRT_EXTREMES_H

#include "crt/halves.h"

CRT_C_BODIES

/* Of each two bytes, or halves, of x and w one: a difference sets flags, by
 * which SEL chooses. */
#if defined(CRT_DSP)
#define CRT_CHOSEN(name, code, value)                                          \
    CRT_INLINE int32_t name(int32_t x, int32_t w)                              \
    {                                                                          \
        int32_t chosen;                                                        \
        __asm__(code : "=&r"(chosen) : "r"(x), "r"(w) : "cc");                 \
        return chosen;                                                         \
    }
#else
#define CRT_CHOSEN(name, code, value)                                          \
    CRT_INLINE int32_t name(int32_t x, int32_t w)                              \
    {                                                                          \
        return value;                                                          \
    }
#endif
CRT_CHOSEN(crt_min_bytes, "ssub8 %0, %1, %2\n\tsel %0, %2, %1",
           crt_min_int32(x >> 24, w >> 24) * 0x1000000 +
               (crt_min_int32((int8_t)(x >> 16), (int8_t)(w >> 16)) & 0xFF) *
                   0x10000 +
               (crt_min_int32((int8_t)(x >> 8), (int8_t)(w >> 8)) & 0xFF) *
                   0x100 +
               (crt_min_int32((int8_t)x, (int8_t)w) & 0xFF))
CRT_CHOSEN(crt_max_halves, "ssub16 %0, %1, %2\n\tsel %0, %1, %2",
           crt_max_int32(x >> 16, w >> 16) * 65536 +
               (crt_max_int32((int16_t)x, (int16_t)w) & 0xFFFF))
CRT_CHOSEN(crt_min_halves, "ssub16 %0, %1, %2\n\tsel %0, %2, %1",
           crt_min_int32(x >> 16, w >> 16) * 65536 +
               (crt_min_int32((int16_t)x, (int16_t)w) & 0xFFFF))

/* In each lane: the greater, and the less. */
CRT_INLINE crt_int16x8 crt_max8(crt_int16x8 v, crt_int16x8 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vmaxq_s16(v, u);
#else
    for (int i = 0; i < 8; i++) {
        v.lane[i] = v.lane[i] < u.lane[i] ? u.lane[i] : v.lane[i];
    }
    return v;
#endif
}

CRT_INLINE crt_int16x8 crt_min8(crt_int16x8 v, crt_int16x8 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vminq_s16(v, u);
#else
    for (int i = 0; i < 8; i++) {
        v.lane[i] = u.lane[i] < v.lane[i] ? u.lane[i] : v.lane[i];
    }
    return v;
#endif
}

CRT_INLINE crt_int32x4 crt_min4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vminq_s32(v, u);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = u.lane[i] < v.lane[i] ? u.lane[i] : v.lane[i];
    }
    return v;
#endif
}

/* The greatest of all lanes. */
CRT_INLINE int32_t crt_most8(crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vmaxvq_s16(INT16_MIN, v);
#else
    int32_t most = v.lane[0];
    for (int i = 1; i < 8; i++) {
        most = crt_max_int32(most, v.lane[i]);
    }
    return most;
#endif
}

CRT_C_BODIES_END

#endif
