/* crt/between.h: values between two points of a table, and what holds a place
 * within it; with DSP instructions or Helium (MVE) an instruction or two,
 * elsewhere their meaning. Knows no model.
 * MISRA 10.1, 10.7, 20.7, in this file: they work on bits */
#ifndef CRT_BETWEEN_H
#define CRT_BETWEEN_H

#include "crt/packs.h"

CRT_C_BODIES

/* Held within 0 and so many bits; gcc has a shift before it in the same
 * instruction. */
#if defined(CRT_DSP) && !defined(__clang__) && __GNUC__ >= 10
#define CRT_HELD(name, bits)                                                   \
    CRT_INLINE int32_t name(int32_t x)                                         \
    {                                                                          \
        return (int32_t)__builtin_arm_usat(x, bits);                           \
    }
#else
#define CRT_HELD(name, bits)                                                   \
    CRT_INLINE int32_t name(int32_t x)                                         \
    {                                                                          \
        return crt_min_int32(crt_max_int32(x, 0), (1 << (bits)) - 1);          \
    }
#endif
CRT_HELD(crt_held_14_bits, 14)
CRT_HELD(crt_held_16_bits, 16)
CRT_HELD(crt_held_17_bits, 17)

/* start + points.low * shares.low + points.high * shares.high, as crt_dot2, in
 * another register than the start's. */
CRT_INLINE int32_t crt_two_points(int32_t points, int32_t shares, int32_t start)
{
#if defined(CRT_DSP)
    int32_t value;
    __asm__("smlad %0, %1, %2, %3"
            : "=r"(value)
            : "r"(points), "r"(shares), "r"(start));
    return value;
#else
    return start + (int16_t)points * (int16_t)shares +
           (points >> 16) * (shares >> 16);
#endif
}

/* In each lane: v without its sign, n at most; v's bits that n has. */
CRT_INLINE crt_int32x4 crt_size4(crt_int32x4 v, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vminq_s32(vqabsq_s32(v), vdupq_n_s32(n));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = crt_min_int32(crt_max_int32(v.lane[i], -v.lane[i]), n);
    }
    return v;
#endif
}

CRT_INLINE crt_int32x4 crt_bits4(crt_int32x4 v, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vandq_s32(v, vdupq_n_s32(n));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] &= n;
    }
    return v;
#endif
}

/* In each lane: v * n + (u - v) * part */
CRT_INLINE crt_int32x4 crt_between4(crt_int32x4 v, crt_int32x4 u,
                                    crt_int32x4 part, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vmlaq_n_s32(vmulq_s32(vsubq_s32(u, v), part), v, n);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = v.lane[i] * n + (u.lane[i] - v.lane[i]) * part.lane[i];
    }
    return v;
#endif
}

/* In each lane: v, with its sign changed where that of u is minus. */
CRT_INLINE crt_int32x4 crt_signed4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vnegq_m_s32(v, v, vcmpltq_n_s32(u, 0));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = u.lane[i] < 0 ? -v.lane[i] : v.lane[i];
    }
    return v;
#endif
}

CRT_C_BODIES_END

#endif
