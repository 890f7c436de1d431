/* crt/floats.h: arithmetic of four floats; with Helium (MVE) an instruction or
 * two, elsewhere a loop. Knows no model.
 * MISRA 10.1, in this file: bits are moved as other types */
#ifndef CRT_FLOATS_H
#define CRT_FLOATS_H

#include "crt/reals.h"

CRT_C_BODIES

/* In each lane: v as a real number. */
CRT_INLINE crt_float32x4 crt_of_words4(crt_int32x4 v)
{
#if defined(CRT_MVE_REALS)
    return vcvtq_f32_s32(v);
#else
    crt_float32x4 made;
    for (int i = 0; i < 4; i++) {
        made.lane[i] = (float)v.lane[i];
    }
    return made;
#endif
}

/* In each lane: no less than the bits of |v|. */
CRT_INLINE crt_int32x4 crt_reach4(crt_int32x4 most, crt_float32x4 v)
{
#if defined(CRT_MVE_REALS)
    return vmaxq_s32(most, vreinterpretq_s32_f32(vabsq_f32(v)));
#else
    for (int i = 0; i < 4; i++) {
        int32_t bits = crt_float32_as_int32(v.lane[i]);
        most.lane[i] = crt_max_int32(most.lane[i], bits & INT32_MAX);
    }
    return most;
#endif
}

/* In each lane: no less than the bits of v. */
CRT_INLINE crt_int32x4 crt_above4(crt_int32x4 most, crt_float32x4 v)
{
#if defined(CRT_MVE_REALS)
    return vmaxq_s32(most, vreinterpretq_s32_f32(v));
#else
    for (int i = 0; i < 4; i++) {
        int32_t bits = crt_float32_as_int32(v.lane[i]);
        most.lane[i] = crt_max_int32(most.lane[i], bits);
    }
    return most;
#endif
}

/* In each lane: no less than the bits of -v. */
CRT_INLINE crt_int32x4 crt_below4(crt_int32x4 most, crt_float32x4 v)
{
#if defined(CRT_MVE_REALS)
    return vmaxq_s32(most, vreinterpretq_s32_f32(vnegq_f32(v)));
#else
    for (int i = 0; i < 4; i++) {
        int32_t bits = crt_float32_as_int32(v.lane[i]);
        most.lane[i] = crt_max_int32(most.lane[i], bits ^ INT32_MIN);
    }
    return most;
#endif
}

/* The greatest of n and all lanes. */
CRT_INLINE int32_t crt_greatest4(int32_t n, crt_int32x4 most)
{
#if defined(CRT_MVE_REALS)
    return vmaxvq_s32(n, most);
#else
    for (int i = 0; i < 4; i++) {
        n = crt_max_int32(n, most.lane[i]);
    }
    return n;
#endif
}

/* In each lane: v + w. */
CRT_INLINE crt_float32x4 crt_add_reals4(crt_float32x4 v, crt_float32x4 w)
{
#if defined(CRT_MVE_REALS)
    return vaddq_f32(v, w);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] += w.lane[i];
    }
    return v;
#endif
}

/* In each lane: v - w. */
CRT_INLINE crt_float32x4 crt_sub_reals4(crt_float32x4 v, crt_float32x4 w)
{
#if defined(CRT_MVE_REALS)
    return vsubq_f32(v, w);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] -= w.lane[i];
    }
    return v;
#endif
}

/* In each lane: v * w. */
CRT_INLINE crt_float32x4 crt_mul_reals4(crt_float32x4 v, crt_float32x4 w)
{
#if defined(CRT_MVE_REALS)
    return vmulq_f32(v, w);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] *= w.lane[i];
    }
    return v;
#endif
}

/* x in each lane. */
CRT_INLINE crt_float32x4 crt_all_reals4(float x)
{
#if defined(CRT_MVE_REALS)
    return vdupq_n_f32(x);
#else
    crt_float32x4 v = {{x, x, x, x}};
    return v;
#endif
}

/* In each lane: v + x * w, rounded twice. */
CRT_INLINE crt_float32x4 crt_add_product4(crt_float32x4 v, float x,
                                          crt_float32x4 w)
{
#if defined(CRT_MVE_REALS)
    return vaddq_f32(v, vmulq_n_f32(w, x));
#else
    for (int i = 0; i < 4; i++) {
        float product = x * w.lane[i];
        v.lane[i] += product;
    }
    return v;
#endif
}

/* The same, of an x of each lane. */
CRT_INLINE crt_float32x4 crt_add_products4(crt_float32x4 v, crt_float32x4 x,
                                           crt_float32x4 w)
{
#if defined(CRT_MVE_REALS)
    return vaddq_f32(v, vmulq_f32(x, w));
#else
    for (int i = 0; i < 4; i++) {
        float product = x.lane[i] * w.lane[i];
        v.lane[i] += product;
    }
    return v;
#endif
}

/* In each lane: v, but no less than x; NaN stays. */
CRT_INLINE crt_float32x4 crt_at_least4(crt_float32x4 v, float x)
{
#if defined(CRT_MVE_REALS)
    /* "greater" is false of NaN, "less" is not */
    crt_float32x4 least = vdupq_n_f32(x);
    return vpselq_f32(least, v, vcmpgtq_f32(least, v));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = crt_max_float32(v.lane[i], x);
    }
    return v;
#endif
}

/* In each lane: v, but no more than x; NaN stays. */
CRT_INLINE crt_float32x4 crt_at_most4(crt_float32x4 v, float x)
{
#if defined(CRT_MVE_REALS)
    return vpselq_f32(vdupq_n_f32(x), v, vcmpgtq_n_f32(v, x));
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = crt_min_float32(v.lane[i], x);
    }
    return v;
#endif
}

CRT_C_BODIES_END

#endif
