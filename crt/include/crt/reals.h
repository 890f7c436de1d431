/* crt/reals.h: integers of real numbers, and back, and float32 of float16; with
 * an FPU or Helium (MVE) few instructions, elsewhere comparisons and loops.
 * Knows no model.
 * MISRA 10.1, 21.15, in this file: bits are moved as other types */
#ifndef CRT_REALS_H
#define CRT_REALS_H

#include "crt/rounds.h"

#if defined(__arm__) && defined(__ARM_FP) && defined(CRT_ASM)
#define CRT_FPU 1
#endif
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define CRT_MVE_REALS 1
typedef float32x4_t crt_float32x4;
#else
typedef struct {
    float lane[4];
} crt_float32x4;
#endif

/* that of a Cortex-M widens halves, too */
#if defined(CRT_FPU) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define CRT_FPU_HALVES 1
#endif

CRT_C_BODIES

/* The integer next to x toward zero, held within int32; of NaN 0. */
CRT_INLINE int32_t crt_whole(float x)
{
#if defined(CRT_FPU)
    __asm__("vcvt.s32.f32 %0, %0" : "+t"(x));
    return crt_float32_as_int32(x);
#else
    if (!(x < 2147483648.0f)) {
        return x > 0.0f ? INT32_MAX : 0;
    }
    return x < -2147483648.0f ? INT32_MIN : (int32_t)x;
#endif
}

/* The integer next to x, ties to even, held within int32; of NaN 0. */
CRT_INLINE int32_t crt_whole_even(float x)
{
#if defined(CRT_FPU)
    __asm__("vcvtr.s32.f32 %0, %0" : "+t"(x));
    return crt_float32_as_int32(x);
#else
    if (x > -8388608.0f && x < 8388608.0f) { /* else it is an integer */
        float whole = x < 0.0f ? -8388608.0f : 8388608.0f;
        x = (x + whole) - whole;
    }
    return crt_whole(x);
#endif
}

/* The same, ties away from zero. */
CRT_INLINE int32_t crt_whole_away(float x)
{
    if (x > -8388608.0f && x < 8388608.0f) {
        float whole = (float)(int32_t)x;
        float rest = x - whole;
        x = rest >= 0.5f ? whole + 1.0f : whole;
        x = rest <= -0.5f ? whole - 1.0f : x;
    }
    return crt_whole(x);
}

CRT_INLINE crt_float32x4 crt_load_float32x4(const float *from)
{
#if defined(CRT_MVE_REALS)
    return vldrwq_f32(from);
#else
    crt_float32x4 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
#endif
}

CRT_INLINE void crt_store_float32x4(float *to, crt_float32x4 v)
{
#if defined(CRT_MVE_REALS)
    vstrwq_f32(to, v);
#else
    CRT_COPY(to, &v, sizeof v);
#endif
}

/* In each lane: v / x.
 * MISRA 17.7: a register's name is not a call */
CRT_INLINE crt_float32x4 crt_quotient4(crt_float32x4 v, float x)
{
#if defined(CRT_MVE_REALS) && defined(CRT_ASM)
    /* gcc moves each lane through a register of the core, and memory */
    register crt_float32x4 q __asm__("q0") = v;
    __asm__("vdiv.f32 s0, s0, %1\n\tvdiv.f32 s1, s1, %1\n\t"
            "vdiv.f32 s2, s2, %1\n\tvdiv.f32 s3, s3, %1"
            : "+w"(q)
            : "t"(x));
    return q;
#else
    float lane[4];
    crt_store_float32x4(lane, v);
    for (int i = 0; i < 4; i++) {
        lane[i] /= x;
    }
    return crt_load_float32x4(lane);
#endif
}

/* In each lane: crt_whole_away, held within low and high, + n. */
CRT_INLINE crt_int32x4 crt_steps_away4(crt_float32x4 v, int32_t low,
                                       int32_t high, int32_t n)
{
#if defined(CRT_MVE_REALS)
    return crt_hold4(vcvtaq_s32_f32(v), low, high, n);
#else
    int32_t whole[4];
    for (int i = 0; i < 4; i++) {
        whole[i] = crt_whole_away(v.lane[i]);
    }
    return crt_hold4(crt_load_int32x4(whole), low, high, n);
#endif
}

/* The same of crt_whole_even. */
CRT_INLINE crt_int32x4 crt_steps_even4(crt_float32x4 v, int32_t low,
                                       int32_t high, int32_t n)
{
#if defined(CRT_MVE_REALS)
    return crt_hold4(vcvtnq_s32_f32(v), low, high, n);
#else
    int32_t whole[4];
    for (int i = 0; i < 4; i++) {
        whole[i] = crt_whole_even(v.lane[i]);
    }
    return crt_hold4(crt_load_int32x4(whole), low, high, n);
#endif
}

/* In each lane: v as a real number, times x. */
CRT_INLINE crt_float32x4 crt_real4(crt_int32x4 v, float x)
{
#if defined(CRT_MVE_REALS)
    return vmulq_n_f32(vcvtq_f32_s32(v), x);
#else
    int32_t whole[4];
    float real[4];
    crt_store_int32x4(whole, v);
    for (int i = 0; i < 4; i++) {
        real[i] = (float)whole[i] * x;
    }
    return crt_load_float32x4(real);
#endif
}

/* The float32 of the float16 in the lower half of h; the bits of a NaN stay. */
CRT_INLINE float crt_from_half(int32_t h)
{
#if defined(CRT_FPU_HALVES)
    float x;
    __asm__("vcvtb.f32.f16 %0, %1" : "=t"(x) : "t"(crt_int32_as_float32(h)));
    return x;
#else
    uint32_t bits = (uint32_t)h << 17 >> 4;
    uint32_t sign = (uint32_t)h >> 15 << 31;
    if (bits - 0x800000u < 0xF000000u) {
        bits += 0x38000000u;
    } else if (bits >= 0x800000u) { /* infinity, NaN */
        bits += 0x70000000u;
    } else if (bits != 0u) { /* subnormal: the difference of two that are not */
        bits += 0x38800000u;
        float lifted = crt_int32_as_float32((int32_t)bits);
        bits = (uint32_t)crt_float32_as_int32(lifted - 6.103515625e-5f);
    } else {
        /* 0 stays */
    }
    bits |= sign;
    return crt_int32_as_float32((int32_t)bits);
#endif
}

/* The same of the upper half. */
CRT_INLINE float crt_from_high_half(int32_t h)
{
#if defined(CRT_FPU_HALVES)
    float x;
    __asm__("vcvtt.f32.f16 %0, %1" : "=t"(x) : "t"(crt_int32_as_float32(h)));
    return x;
#else
    return crt_from_half(h >> 16);
#endif
}

#if defined(CRT_MVE_REALS) && defined(CRT_ASM) && !defined(__clang__)
/* GNU's assembler (2.40) gives vcvtb and vcvtt other registers than those that
 * are named: their words, and in them the numbers of registers */
#define CRT_NUMBERS                                                            \
    ".set crt_q0, 0\n\t.set crt_q1, 1\n\t.set crt_q2, 2\n\t"                   \
    ".set crt_q3, 3\n\t.set crt_q4, 4\n\t.set crt_q5, 5\n\t"                   \
    ".set crt_q6, 6\n\t.set crt_q7, 7\n\t"
/* MISRA 20.7: a word is a piece of a string */
#define CRT_WIDEN(v, word)                                                     \
    crt_float32x4 made;                                                        \
    __asm__(CRT_NUMBERS ".inst.w " word " + 8192 * crt_%q0 + 2 * crt_%q1"      \
            : "=w"(made)                                                       \
            : "w"(v));                                                         \
    return made
#endif

/* The same in each lane: of the lower half, of the upper half. */
CRT_INLINE crt_float32x4 crt_from_halves4(crt_int32x4 v)
{
#if defined(CRT_WIDEN)
    CRT_WIDEN(v, "0xFE3F0E01");
#elif defined(CRT_MVE_REALS) && defined(__clang__)
    return vcvtbq_f32_f16(vreinterpretq_f16_s32(v));
#else
    int32_t both[4];
    float real[4];
    crt_store_int32x4(both, v);
    for (int i = 0; i < 4; i++) {
        real[i] = crt_from_half(both[i]);
    }
    return crt_load_float32x4(real);
#endif
}

CRT_INLINE crt_float32x4 crt_from_high_halves4(crt_int32x4 v)
{
#if defined(CRT_WIDEN)
    CRT_WIDEN(v, "0xFE3F1E01");
#elif defined(CRT_MVE_REALS) && defined(__clang__)
    return vcvttq_f32_f16(vreinterpretq_f16_s32(v));
#else
    int32_t both[4];
    float real[4];
    crt_store_int32x4(both, v);
    for (int i = 0; i < 4; i++) {
        real[i] = crt_from_high_half(both[i]);
    }
    return crt_load_float32x4(real);
#endif
}

CRT_C_BODIES_END

#endif
