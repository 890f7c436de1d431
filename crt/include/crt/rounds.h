/* crt/rounds.h: the rules of rounding by which kernels for Cortex-M55 end a
 * layer, lane by lane; with Helium (MVE) few instructions, elsewhere a loop.
 * Knows no model.
 * MISRA 10.1, 21.15, in this file: bits are moved as other types */
#ifndef CRT_ROUNDS_H
#define CRT_ROUNDS_H

#include "crt/lanes.h"

CRT_C_BODIES

/* In each lane: v + add, and 1 more where bit n of v is set. */
CRT_INLINE crt_int32x4 crt_even4(crt_int32x4 v, int32_t n, int32_t add)
{
#if defined(__ARM_FEATURE_MVE)
    crt_int32x4 bit = vandq_s32(vshlq_r_s32(v, -n), vdupq_n_s32(1));
    return vaddq_s32(vaddq_n_s32(v, add), bit);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += add + (v.lane[i] >> n & 1);
    }
    return v;
#endif
}

/* In each lane: v * 2^n, held within int32. */
CRT_INLINE crt_int32x4 crt_lift4(crt_int32x4 v, crt_int32x4 n)
{
#if defined(__ARM_FEATURE_MVE)
    return vqshlq_s32(v, n);
#else
    for (int i = 0; i < 4; i++) {
        int64_t value = v.lane[i] * ((int64_t)1 << n.lane[i]);
        value = value < INT32_MIN ? INT32_MIN : value;
        v.lane[i] = (int32_t)(value > INT32_MAX ? INT32_MAX : value);
    }
    return v;
#endif
}

/* In each lane: v * m / 2^31, then / 2^-n; ties first up, then away from zero.
 */
CRT_INLINE crt_int32x4 crt_twice4(crt_int32x4 v, crt_int32x4 m, crt_int32x4 n)
{
#if defined(__ARM_FEATURE_MVE)
    v = vqrdmulhq_s32(v, m);
    return vrshlq_s32(vaddq_s32(v, vshrq_n_s32(vandq_s32(v, n), 31)), n);
#else
    for (int i = 0; i < 4; i++) {
        int64_t high = (v.lane[i] * (int64_t)m.lane[i] + (1 << 30)) >> 31;
        int64_t half = ((int64_t)1 << -n.lane[i]) >> 1;
        half -= (high < 0 && n.lane[i] < 0) ? 1 : 0;
        v.lane[i] = (int32_t)((high + half) >> -n.lane[i]);
    }
    return v;
#endif
}

/* A word's low byte, with its sign. */
CRT_INLINE int32_t crt_low_byte(int32_t n)
{
    return ((n & 255) ^ 128) - 128;
}

/* The same, where n, the low byte of a word, is below 0. */
CRT_INLINE crt_int32x4 crt_twice_down4(crt_int32x4 v, crt_int32x4 m,
                                       crt_int32x4 n)
{
#if defined(__ARM_FEATURE_MVE)
    v = vqrdmulhq_s32(v, m);
    return vrshlq_s32(vaddq_s32(v, vshrq_n_s32(v, 31)), n);
#else
    for (int i = 0; i < 4; i++) {
        n.lane[i] = crt_low_byte(n.lane[i]);
    }
    return crt_twice4(v, m, n);
#endif
}

/* In each lane: v and what u holds above its low byte. */
CRT_INLINE crt_int32x4 crt_above_byte4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vaddq_s32(v, vshrq_n_s32(u, 8));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += u.lane[i] >> 8;
    }
    return v;
#endif
}

/* In each lane: v and what u holds above its five low bits. */
CRT_INLINE crt_int32x4 crt_above_five4(crt_int32x4 v, crt_int32x4 u)
{
#if defined(__ARM_FEATURE_MVE)
    return vaddq_s32(v, vshrq_n_s32(u, 5));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += u.lane[i] >> 5;
    }
    return v;
#endif
}

/* Words whose low byte is the number in the five low bits, less 32. */
CRT_INLINE crt_int32x4 crt_five_low4(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vorrq_n_s32(v, 224);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] |= 224;
    }
    return v;
#endif
}

/* In each lane: v * m / 2^(32 - n), n < 0, the low byte of a word; ties up. */
CRT_INLINE crt_int32x4 crt_once4(crt_int32x4 v, crt_int32x4 m, crt_int32x4 n)
{
#if defined(__ARM_FEATURE_MVE)
    return vrshlq_s32(vmulhq_s32(v, m), n);
#else
    for (int i = 0; i < 4; i++) {
        int32_t high = crt_mulhi(v.lane[i], m.lane[i]);
        int32_t right = -crt_low_byte(n.lane[i]);
        v.lane[i] = (high + ((int32_t)1 << (right - 1))) >> right;
    }
    return v;
#endif
}

/* The same; ties away from zero. */
CRT_INLINE crt_int32x4 crt_away4(crt_int32x4 v, crt_int32x4 m, crt_int32x4 n)
{
#if defined(__ARM_FEATURE_MVE)
    crt_int32x4 high = vmulhq_s32(v, m);
    crt_int32x4 sign = vshrq_n_s32(high, 31);
    /* a product compared with the number 0 ends gcc 12 with an internal error
     * (trunc_int_for_mode): with a vector of zeros */
    mve_pred16_t tie = vcmpeqq_s32(vmulq_s32(v, m), vdupq_n_s32(0));
    return vrshlq_s32(vaddq_m_s32(high, high, sign, tie), n);
#else
    for (int i = 0; i < 4; i++) {
        int64_t product = v.lane[i] * (int64_t)m.lane[i];
        int32_t right = 32 - crt_low_byte(n.lane[i]);
        int64_t half = (int64_t)1 << (right - 1);
        half -= product < 0 ? 1 : 0;
        v.lane[i] = (int32_t)((product + half) >> right);
    }
    return v;
#endif
}

/* In each lane: v times a float, of which `scale` has the bits; ties to even.
 * Only from -512 to 511 it is exact. */
CRT_INLINE crt_int32x4 crt_scaled4(crt_int32x4 v, crt_int32x4 scale)
{
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
    float32x4_t factor = vreinterpretq_f32_s32(scale);
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(v), factor));
#else
    int32_t from[4], bits[4];
    CRT_COPY(from, &v, sizeof from);
    CRT_COPY(bits, &scale, sizeof bits);
    for (int i = 0; i < 4; i++) {
        float factor;
        CRT_COPY(&factor, &bits[i], sizeof factor);
        float value = (float)from[i] * factor;
        value = value < -512.0f ? -512.0f : value;
        value = (value > 511.0f ? 511.0f : value) + 12582912.0f;
        CRT_COPY(&from[i], &value, sizeof value);
        from[i] -= 0x4B400000;
    }
    CRT_COPY(&v, from, sizeof from);
    return v;
#endif
}

/* In each lane: v, held within low and high, + n. */
CRT_INLINE crt_int32x4 crt_hold4(crt_int32x4 v, int32_t low, int32_t high,
                                 int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    v = vmaxq_s32(v, vdupq_n_s32(low));
    return vaddq_n_s32(vminq_s32(v, vdupq_n_s32(high)), n);
#else
    for (int i = 0; i < 4; i++) {
        int32_t value = crt_max_int32(v.lane[i], low);
        v.lane[i] = crt_min_int32(value, high) + n;
    }
    return v;
#endif
}

/* One lane of four. */
CRT_INLINE int32_t crt_first4(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vgetq_lane_s32(v, 0);
#else
    return v.lane[0];
#endif
}

CRT_INLINE int32_t crt_second4(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vgetq_lane_s32(v, 1);
#else
    return v.lane[1];
#endif
}

CRT_INLINE int32_t crt_third4(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vgetq_lane_s32(v, 2);
#else
    return v.lane[2];
#endif
}

CRT_C_BODIES_END

#endif
