/* crt/eights.h: eight int16 in fixed point, as the curves of kernels for
 * Cortex-M55 need them; with Helium (MVE) few instructions, elsewhere a loop.
 * Knows no model.
 * MISRA 10.1, 20.7, in this file: shifts of signed numbers are arithmetic; an
 * instruction is a whole expression */
#ifndef CRT_EIGHTS_H
#define CRT_EIGHTS_H

#include "crt/packs.h"

CRT_C_BODIES

/* A number held within int16; a product in Q0.15, rounded, too. */
CRT_INLINE int16_t crt_held_int16(int32_t n)
{
    return (int16_t)crt_min_int32(crt_max_int32(n, INT16_MIN), INT16_MAX);
}

CRT_INLINE int16_t crt_high_int16(int32_t a, int32_t b)
{
    return crt_held_int16((a * b + (1 << 14)) >> 15);
}

CRT_INLINE crt_int16x8 crt_all8(int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vdupq_n_s16((int16_t)n);
#else
    return crt_lanes8(n, n, n, n, n, n, n, n);
#endif
}

/* A function of two vectors: its instruction, and what it does in a lane.
 * crt_held8 holds the sum within int16; crt_high8 is the product in Q0.15,
 * rounded; crt_middle8 is (x + y + 1) / 2, rounded down. */
#if defined(__ARM_FEATURE_MVE)
#define CRT_EIGHTS(name, instruction, value)                                   \
    CRT_INLINE crt_int16x8 name(crt_int16x8 x, crt_int16x8 y)                  \
    {                                                                          \
        return instruction;                                                    \
    }
#else
#define CRT_EIGHTS(name, instruction, value)                                   \
    CRT_INLINE crt_int16x8 name(crt_int16x8 x, crt_int16x8 y)                  \
    {                                                                          \
        for (int i = 0; i < 8; i++) {                                          \
            int32_t a = x.lane[i], b = y.lane[i];                              \
            x.lane[i] = (int16_t)(value);                                      \
        }                                                                      \
        return x;                                                              \
    }
#endif
CRT_EIGHTS(crt_plus8, vaddq_s16(x, y), a + b)
CRT_EIGHTS(crt_minus8, vsubq_s16(x, y), a - b)
CRT_EIGHTS(crt_fourfold8, vmlaq_n_s16(x, y, 4), a + b * 4)
CRT_EIGHTS(crt_held8, vqaddq_s16(x, y), crt_held_int16(a + b))
CRT_EIGHTS(crt_high8, vqrdmulhq_s16(x, y), crt_high_int16(a, b))
CRT_EIGHTS(crt_middle8, vrhaddq_s16(x, y), (a + b + 1) >> 1)

/* In each lane: x * n in Q0.15, rounded. */
CRT_INLINE crt_int16x8 crt_high_all8(crt_int16x8 x, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vqrdmulhq_n_s16(x, (int16_t)n);
#else
    return crt_high8(x, crt_all8(n));
#endif
}

/* In each lane: (x + 2) / 4, rounded down. */
CRT_INLINE crt_int16x8 crt_fourth8(crt_int16x8 x)
{
#if defined(__ARM_FEATURE_MVE)
    return vrshrq_n_s16(x, 2);
#else
    for (int i = 0; i < 8; i++) {
        x.lane[i] = (int16_t)((x.lane[i] + 2) >> 2);
    }
    return x;
#endif
}

/* In each lane: the less of x and -x. */
CRT_INLINE crt_int16x8 crt_below8(crt_int16x8 x)
{
#if defined(__ARM_FEATURE_MVE)
    return vminq_s16(x, vqnegq_s16(x));
#else
    for (int i = 0; i < 8; i++) {
        x.lane[i] = (int16_t)crt_min_int32(x.lane[i], -x.lane[i]);
    }
    return x;
#endif
}

/* In each lane: the 13 - n low bits of x, n bits behind them, less 2^12. */
CRT_INLINE crt_int16x8 crt_near8(crt_int16x8 x, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    x = vandq_s16(x, vdupq_n_s16((int16_t)(0x1FFF >> n)));
    return vaddq_n_s16(vshlq_r_s16(x, n), -4096);
#else
    for (int i = 0; i < 8; i++) {
        int32_t low = x.lane[i] & (0x1FFF >> n);
        x.lane[i] = (int16_t)(low * (1 << n) - 4096);
    }
    return x;
#endif
}

/* In each lane: x, or x * m in Q0.15, rounded, where bits n of y are 0. */
CRT_INLINE crt_int16x8 crt_times_where8(crt_int16x8 x, crt_int16x8 y, int32_t n,
                                        int32_t m)
{
#if defined(CRT_MVE_ASM)
    crt_int16x8 bits = vandq_s16(y, vdupq_n_s16((int16_t)n));
    mve_pred16_t where;
    __asm__("vpt.i16 eq, %q2, zr\n\tvqrdmulht.s16 %q0, %q0, %3"
            : "+w"(x), "=Up"(where)
            : "w"(bits), "r"(m));
    return x;
#elif defined(__ARM_FEATURE_MVE)
    crt_int16x8 bits = vandq_s16(y, vdupq_n_s16((int16_t)n));
    return vqrdmulhq_m_n_s16(x, x, (int16_t)m, vcmpeqq_n_s16(bits, 0));
#else
    for (int i = 0; i < 8; i++) {
        if ((y.lane[i] & n) == 0) {
            x.lane[i] = crt_high_int16(x.lane[i], m);
        }
    }
    return x;
#endif
}

/* In each lane: y, or z where x is below 0. */
CRT_INLINE crt_int16x8 crt_by_sign8(crt_int16x8 x, crt_int16x8 y, crt_int16x8 z)
{
#if defined(__ARM_FEATURE_MVE)
    return vpselq_s16(z, y, vcmpltq_n_s16(x, 0));
#else
    for (int i = 0; i < 8; i++) {
        x.lane[i] = x.lane[i] < 0 ? z.lane[i] : y.lane[i];
    }
    return x;
#endif
}

/* In each lane: x, or 0 where y is below n. */
CRT_INLINE crt_int16x8 crt_above8(crt_int16x8 x, crt_int16x8 y, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vdupq_m_n_s16(x, 0, vcmpltq_n_s16(y, (int16_t)n));
#else
    for (int i = 0; i < 8; i++) {
        x.lane[i] = (int16_t)(y.lane[i] < n ? 0 : x.lane[i]);
    }
    return x;
#endif
}

/* In each lane: x, or n where y is 0. */
CRT_INLINE crt_int16x8 crt_at_zero8(crt_int16x8 x, crt_int16x8 y, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vdupq_m_n_s16(x, (int16_t)n, vcmpeqq_n_s16(y, 0));
#else
    for (int i = 0; i < 8; i++) {
        x.lane[i] = (int16_t)(y.lane[i] == 0 ? n : x.lane[i]);
    }
    return x;
#endif
}

/* Products of the first of each two lanes; of the second. */
CRT_INLINE crt_int32x4 crt_products_even8(crt_int16x8 x, crt_int16x8 y)
{
#if defined(__ARM_FEATURE_MVE)
    return vmullbq_int_s16(x, y);
#else
    const int16_t *a = x.lane, *b = y.lane;
    crt_int32x4 v = {{a[0] * b[0], a[2] * b[2], a[4] * b[4], a[6] * b[6]}};
    return v;
#endif
}

CRT_INLINE crt_int32x4 crt_products_odd8(crt_int16x8 x, crt_int16x8 y)
{
#if defined(__ARM_FEATURE_MVE)
    return vmulltq_int_s16(x, y);
#else
    const int16_t *a = x.lane, *b = y.lane;
    crt_int32x4 v = {{a[1] * b[1], a[3] * b[3], a[5] * b[5], a[7] * b[7]}};
    return v;
#endif
}

/* In each lane: v / 2^n, n from 1, ties away from zero. */
CRT_INLINE crt_int32x4 crt_away_all4(crt_int32x4 v, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vrshlq_n_s32(vaddq_s32(v, vshrq_n_s32(v, 31)), -n);
#else
    for (int i = 0; i < 4; i++) {
        int32_t below = v.lane[i] >> 31;
        v.lane[i] = (v.lane[i] + (1 << (n - 1)) + below) >> n;
    }
    return v;
#endif
}

/* In each lane: a curve d steps of 2^-n from its middle, between points from
 * there on; behind the last of 256 it is top. Of n 8 tanh, of n 9 logistic. */
CRT_INLINE crt_int32x4 crt_curve4(const uint16_t *points, crt_int32x4 d,
                                  int32_t n, int32_t top)
{
    int32_t half = n < 9 ? 1 << 23 : 0, most = n < 9 ? 1 << 23 : 1 << 25;
    int32_t end = n < 9 ? n : n + 1;
#if defined(__ARM_FEATURE_MVE)
    crt_int32x4 size = vqabsq_s32(d), cell = vshlq_r_s32(size, -n);
    uint32x4_t at = vreinterpretq_u32_s32(vminq_s32(cell, vdupq_n_s32(254)));
    uint32x4_t one = vldrhq_gather_shifted_offset_u32(points, at);
    uint32x4_t next = vldrhq_gather_shifted_offset_u32(points + 1, at);
    crt_int32x4 first = vreinterpretq_s32_u32(one);
    crt_int32x4 rise = vreinterpretq_s32_u32(vsubq_u32(next, one));
    size = vandq_s32(size, vdupq_n_s32((1 << n) - 1));
    first = vaddq_s32(vshlq_r_s32(first, n), vmulq_s32(size, rise));
    first = vdupq_m_n_s32(first, top << n, vcmpgtq_n_s32(cell, 254));
    rise = vsubq_s32(vdupq_n_s32(most - 1), first);
    first = vsubq_s32(first, vdupq_n_s32(half));
    first = vpselq_s32(rise, first, vcmpltq_n_s32(d, 0));
    return vrshlq_n_s32(first, -end);
#else
    for (int i = 0; i < 4; i++) {
        int32_t size = d.lane[i] < 0 ? -d.lane[i] : d.lane[i];
        int32_t cell = size >> n, at = crt_min_int32(cell, 254);
        int32_t rise = (int32_t)points[at + 1] - (int32_t)points[at];
        int32_t t = (int32_t)points[at] * (1 << n);
        t += (size & ((1 << n) - 1)) * rise;
        t = cell < 255 ? t : top * (1 << n);
        t = d.lane[i] < 0 ? most - 1 - t : t - half;
        d.lane[i] = (t + (1 << (end - 1))) >> end;
    }
    return d;
#endif
}

CRT_C_BODIES_END

#endif
