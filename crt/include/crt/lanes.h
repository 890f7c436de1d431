/* crt/lanes.h: what kernels for Cortex-M55 do lane by lane; with Helium (MVE)
 * an instruction or two, elsewhere a loop. Knows no model.
 * MISRA 10.1, in this file: a shift of a signed lane is arithmetic
 * MISRA 20.7, in this file: a name that is declared takes no brackets */
#ifndef CRT_LANES_H
#define CRT_LANES_H

#include "crt/gathers.h"

CRT_C_BODIES

/* n in each lane. */
CRT_INLINE crt_int8x16 crt_all16(int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vdupq_n_s8((int8_t)n);
#else
    crt_int8x16 v;
    for (int i = 0; i < 16; i++) {
        v.lane[i] = (int8_t)n;
    }
    return v;
#endif
}

CRT_INLINE crt_int32x4 crt_all4(int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vdupq_n_s32(n);
#else
    crt_int32x4 v = {{n, n, n, n}};
    return v;
#endif
}

/* In each lane: the greater, and the less. */
CRT_INLINE crt_int8x16 crt_max16(crt_int8x16 v, crt_int8x16 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vmaxq_s8(v, u);
#else
    for (int i = 0; i < 16; i++) {
        v.lane[i] = v.lane[i] < u.lane[i] ? u.lane[i] : v.lane[i];
    }
    return v;
#endif
}

CRT_INLINE crt_int8x16 crt_min16(crt_int8x16 v, crt_int8x16 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vminq_s8(v, u);
#else
    for (int i = 0; i < 16; i++) {
        v.lane[i] = u.lane[i] < v.lane[i] ? u.lane[i] : v.lane[i];
    }
    return v;
#endif
}

CRT_INLINE crt_int32x4 crt_max4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vmaxq_s32(v, u);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = crt_max_int32(v.lane[i], u.lane[i]);
    }
    return v;
#endif
}

/* In each lane: v + u. */
CRT_INLINE crt_int32x4 crt_plus4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vaddq_s32(v, u);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += u.lane[i];
    }
    return v;
#endif
}

/* In each lane: v * u. */
CRT_INLINE crt_int32x4 crt_times4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vmulq_s32(v, u);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] *= u.lane[i];
    }
    return v;
#endif
}

/* In each lane: v * u + n. */
CRT_INLINE crt_int32x4 crt_line4(crt_int32x4 v, crt_int32x4 u, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vmlasq_n_s32(v, u, n);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = v.lane[i] * u.lane[i] + n;
    }
    return v;
#endif
}

/* In each lane: v + u * n. */
CRT_INLINE crt_int32x4 crt_more4(crt_int32x4 v, crt_int32x4 u, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vmlaq_n_s32(v, u, n);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += u.lane[i] * n;
    }
    return v;
#endif
}

/* In each lane: acc * 256 + offset. */
CRT_INLINE crt_int32x4 crt_scale4(crt_int32x4 acc, crt_int32x4 offset)
{
#if defined(__ARM_FEATURE_MVE)
    return vmlaq_n_s32(offset, acc, 256);
#else
    for (int i = 0; i < 4; i++) {
        acc.lane[i] = acc.lane[i] * 256 + offset.lane[i];
    }
    return acc;
#endif
}

/* In each lane: v + plus, and where v is negative + minus. */
CRT_INLINE crt_int32x4 crt_correct4(crt_int32x4 v, crt_int32x4 plus,
                                    crt_int32x4 minus)
{
#if defined(__ARM_FEATURE_MVE)
    minus = vandq_s32(minus, vshrq_n_s32(v, 31));
    return vaddq_s32(vaddq_s32(v, plus), minus);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += plus.lane[i] + (v.lane[i] < 0 ? minus.lane[i] : 0);
    }
    return v;
#endif
}

/* In each lane: the high half of the product. */
CRT_INLINE crt_int32x4 crt_mulhi4(crt_int32x4 x, crt_int32x4 w)
{
#if defined(__ARM_FEATURE_MVE)
    return vmulhq_s32(x, w);
#else
    for (int i = 0; i < 4; i++) {
        x.lane[i] = crt_mulhi(x.lane[i], w.lane[i]);
    }
    return x;
#endif
}

/* In each lane: v + n. */
CRT_INLINE crt_int32x4 crt_add4(crt_int32x4 v, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vaddq_n_s32(v, n);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += n;
    }
    return v;
#endif
}

/* In each lane: v >> shift, held within low and high. */
CRT_INLINE crt_int32x4 crt_narrow4(crt_int32x4 v, int32_t shift, int32_t low,
                                   int32_t high)
{
#if defined(__ARM_FEATURE_MVE)
    v = vmaxq_s32(vshlq_r_s32(v, -shift), vdupq_n_s32(low));
    return vminq_s32(v, vdupq_n_s32(high));
#else
    for (int i = 0; i < 4; i++) {
        int32_t value = crt_max_int32(v.lane[i] >> shift, low);
        v.lane[i] = crt_min_int32(value, high);
    }
    return v;
#endif
}

/* m in the first lane, n in the third; of the others nothing is said. */
CRT_INLINE crt_int32x4 crt_twos4(int32_t m, int32_t n)
{
#if defined(CRT_MVE_ASM)
    crt_int32x4 v;
    __asm__ volatile("vmov %q0[2], %q0[0], %1, %2"
                     : "=w"(v), "+&r"(m)
                     : "r"(n));
    return v;
#elif defined(__ARM_FEATURE_MVE)
    crt_int32x4 v = vuninitializedq_s32();
    return vsetq_lane_s32(n, vsetq_lane_s32(m, v, 0), 2);
#else
    return crt_lanes(m, m, n, n);
#endif
}

/* v, its second and its fourth lane replaced. */
CRT_INLINE crt_int32x4 crt_odd4(crt_int32x4 v, int32_t m, int32_t n)
{
#if defined(CRT_MVE_ASM)
    __asm__("vmov %q0[3], %q0[1], %1, %2" : "+w"(v), "+&r"(m) : "r"(n));
    return v;
#elif defined(__ARM_FEATURE_MVE)
    return vsetq_lane_s32(n, vsetq_lane_s32(m, v, 1), 3);
#else
    v.lane[1] = m;
    v.lane[3] = n;
    return v;
#endif
}

/* Of two int4 in each byte the high one, and 16 times the low one. */
#if defined(__ARM_FEATURE_MVE)
#define CRT_INT4(name, instruction, value)                                     \
    CRT_INLINE crt_int8x16 name(crt_int8x16 x)                                 \
    {                                                                          \
        return instruction;                                                    \
    }
#else
#define CRT_INT4(name, instruction, value)                                     \
    CRT_INLINE crt_int8x16 name(crt_int8x16 x)                                 \
    {                                                                          \
        for (int i = 0; i < 16; i++) {                                         \
            x.lane[i] = (int8_t)(value);                                       \
        }                                                                      \
        return x;                                                              \
    }
#endif
CRT_INT4(crt_high_int4, vshrq_n_s8(x, 4), x.lane[i] >> 4)
CRT_INT4(crt_low_int4, vshlq_n_s8(x, 4), x.lane[i] * 16)

CRT_C_BODIES_END

#endif
