/* crt/halves.h: vectors of int16 that kernels for Cortex-M55 are written in;
 * with Helium (MVE) an operation is an instruction, elsewhere a loop.
 * Knows no model. Pointers may have any alignment that their type may have.
 * MISRA 10.1, 21.15, in this file: bits are moved as other types */
#ifndef CRT_HALVES_H
#define CRT_HALVES_H

#include "crt/rounds.h"

#if defined(__ARM_FEATURE_MVE)
typedef int16x8_t crt_int16x8;
#else
/* A value like int16_t, so a typedef like it. */
typedef struct {
    int16_t lane[8];
} crt_int16x8;
#endif

CRT_C_BODIES

CRT_INLINE crt_int16x8 crt_load_int16x8(const int16_t *from)
{
#if defined(CRT_MVE_ASM)
    crt_int16x8 v;
    __asm__ volatile("vldrh.16 %q0, %1"
                     : "=w"(v)
                     : "Ux"(*(const crt_int16x8 *)from));
    return v;
#elif defined(__ARM_FEATURE_MVE)
    return vldrhq_s16(from);
#else
    crt_int16x8 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
#endif
}

/* Eight bytes, each in a lane. */
CRT_INLINE crt_int16x8 crt_load_int16x8_int8(const int8_t *from)
{
#if defined(CRT_MVE_ASM)
    /* gcc knows the registers of its address, in an order that is kept */
    crt_int16x8 v;
    __asm__ volatile("" ::: "memory");
    v = vldrbq_s16(from);
    __asm__ volatile("" : "+w"(v));
    return v;
#elif defined(__ARM_FEATURE_MVE)
    return vldrbq_s16(from);
#else
    crt_int16x8 v;
    for (int i = 0; i < 8; i++) {
        v.lane[i] = from[i];
    }
    return v;
#endif
}

/* Four int16, each in a lane. */
CRT_INLINE crt_int32x4 crt_load_int32x4_int16(const int16_t *from)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrhq_s32(from);
#else
    crt_int32x4 v;
    for (int i = 0; i < 4; i++) {
        v.lane[i] = from[i];
    }
    return v;
#endif
}

/* The low byte of each lane. */
CRT_INLINE void crt_store_int16x8_int8(int8_t *to, crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrbq_s16(to, v);
#else
    for (int i = 0; i < 8; i++) {
        to[i] = (int8_t)v.lane[i];
    }
#endif
}

CRT_INLINE void crt_store_int16x8(int16_t *to, crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrhq_s16(to, v);
#else
    CRT_COPY(to, &v, sizeof v);
#endif
}

/* The low half of each lane. */
CRT_INLINE void crt_store_int32x4_int16(int16_t *to, crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrhq_s32(to, v);
#else
    for (int i = 0; i < 4; i++) {
        to[i] = (int16_t)v.lane[i];
    }
#endif
}

/* In each lane: x, held within low and high. */
CRT_INLINE crt_int16x8 crt_hold8(crt_int16x8 x, int32_t low, int32_t high)
{
#if defined(__ARM_FEATURE_MVE)
    x = vmaxq_s16(x, vdupq_n_s16((int16_t)low));
    return vminq_s16(x, vdupq_n_s16((int16_t)high));
#else
    for (int i = 0; i < 8; i++) {
        int32_t value = crt_max_int32(x.lane[i], low);
        x.lane[i] = (int16_t)crt_min_int32(value, high);
    }
    return x;
#endif
}

/* In each lane: x, held within int8; of the result only the low byte counts. */
CRT_INLINE crt_int16x8 crt_byte8(crt_int16x8 x)
{
#if defined(CRT_MVE_ASM)
    __asm__("vqmovnb.s16 %q0, %q0" : "+w"(x));
    return x;
#elif defined(__ARM_FEATURE_MVE)
    return vreinterpretq_s16_s8(vqmovnbq_s16(vreinterpretq_s8_s16(x), x));
#else
    return crt_hold8(x, INT8_MIN, INT8_MAX);
#endif
}

/* Bytes from the first of eight pixels to each: four that are m apart, and four
 * that begin n behind them, in turns. */
CRT_INLINE crt_int16x8 crt_places8(int32_t m, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    int16x8_t i = vreinterpretq_s16_u16(vidupq_n_u16(0, 1));
    int16x8_t at = vmulq_n_s16(vshrq_n_s16(i, 1), (int16_t)m);
    return vmlaq_n_s16(at, vandq_s16(i, vdupq_n_s16(1)), (int16_t)n);
#else
    crt_int16x8 at;
    for (int i = 0; i < 8; i++) {
        at.lane[i] = (int16_t)(m * (i / 2) + n * (i % 2));
    }
    return at;
#endif
}

/* The low byte of each lane, so many bytes behind `to`. */
CRT_INLINE void crt_scatter_int16x8_int8(int8_t *to, crt_int16x8 bytes,
                                         crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrbq_scatter_offset_s16(to, vreinterpretq_u16_s16(bytes), v);
#else
    for (int i = 0; i < 8; i++) {
        to[bytes.lane[i]] = (int8_t)v.lane[i];
    }
#endif
}

/* Each lane so many elements behind `to`. */
CRT_INLINE void crt_scatter_int16x8(int16_t *to, crt_int16x8 places,
                                    crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrhq_scatter_shifted_offset_s16(to, vreinterpretq_u16_s16(places), v);
#else
    for (int i = 0; i < 8; i++) {
        to[places.lane[i]] = v.lane[i];
    }
#endif
}

/* The int16 so many elements behind `from`, each in a lane. */
CRT_INLINE crt_int32x4 crt_gather_halves4(const int16_t *from,
                                          crt_int32x4 places)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrhq_gather_shifted_offset_s32(from,
                                            vreinterpretq_u32_s32(places));
#else
    for (int i = 0; i < 4; i++) {
        places.lane[i] = from[places.lane[i]];
    }
    return places;
#endif
}

/* The int16 so many elements behind `from`, eight of them. */
CRT_INLINE crt_int16x8 crt_gather8(const int16_t *from, crt_int16x8 places)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrhq_gather_shifted_offset_s16(from,
                                            vreinterpretq_u16_s16(places));
#else
    for (int i = 0; i < 8; i++) {
        places.lane[i] = from[places.lane[i]];
    }
    return places;
#endif
}

/* acc + the sum of all x * w */
CRT_INLINE int32_t crt_dot8(int32_t acc, crt_int16x8 x, crt_int16x8 w)
{
#if defined(CRT_MVE_ASM)
    if (__builtin_constant_p(acc) && acc == 0) {
        __asm__ volatile("vmladav.s16 %0, %q1, %q2"
                         : "=Te"(acc)
                         : "w"(x), "w"(w));
    } else {
        __asm__ volatile("vmladava.s16 %0, %q1, %q2"
                         : "+Te"(acc)
                         : "w"(x), "w"(w));
    }
    return acc;
#elif defined(__ARM_FEATURE_MVE)
    return vmladavaq_s16(acc, x, w);
#else
    for (int i = 0; i < 8; i++) {
        acc += x.lane[i] * w.lane[i];
    }
    return acc;
#endif
}

/* The same of a sum of 64 bits. */
CRT_INLINE int64_t crt_long_dot8(int64_t acc, crt_int16x8 x, crt_int16x8 w)
{
#if defined(CRT_MVE_ASM)
    __asm__ volatile("vmlaldava.s16 %Q0, %R0, %q1, %q2"
                     : "+r"(acc)
                     : "w"(x), "w"(w));
    return acc;
#elif defined(__ARM_FEATURE_MVE)
    return vmlaldavaq_s16(acc, x, w);
#else
    for (int i = 0; i < 8; i++) {
        acc += x.lane[i] * w.lane[i];
    }
    return acc;
#endif
}

CRT_C_BODIES_END

#endif
