/* crt/vector.h: the vectors that kernels for Cortex-M55 are written in; with
 * Helium (MVE) an operation is an instruction or two, elsewhere a loop.
 * Knows no model. Pointers may have any alignment, but to int32 that of int32.
 * MISRA 10.1, 21.15, in this file: bits are moved as other types */
#ifndef CRT_VECTOR_H
#define CRT_VECTOR_H

#include "crt/intrin.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>

typedef int8x16_t crt_int8x16;
typedef int32x4_t crt_int32x4;
#else
/* Values like int8_t, so typedefs like it. */
typedef struct {
    int8_t lane[16];
} crt_int8x16;
typedef struct {
    int32_t lane[4];
} crt_int32x4;
#endif
typedef struct {
    crt_int8x16 val[4];
} crt_int8x64;
typedef struct {
    crt_int8x16 val[2];
} crt_int8x32;

CRT_C_BODIES

/* gcc would load all bytes of a kernel first, and run out of registers: what is
 * volatile stays in the order in which it is written. */
#if defined(__ARM_FEATURE_MVE) && defined(CRT_ASM) && !defined(__clang__)
#define CRT_MVE_ASM 1
/* Pieces of assembly that take nearly all registers. */
#if defined(__OPTIMIZE__)
#define CRT_MVE_BLOCKS 1
#endif
#endif

CRT_INLINE crt_int8x16 crt_load_int8x16(const int8_t *from)
{
#if defined(CRT_MVE_ASM)
    crt_int8x16 v;
    __asm__ volatile("vldrb.8 %q0, %1"
                     : "=w"(v)
                     : "Ux"(*(const crt_int8x16 *)from));
    return v;
#elif defined(__ARM_FEATURE_MVE)
    return vldrbq_s8(from);
#else
    crt_int8x16 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
#endif
}

CRT_INLINE crt_int32x4 crt_load_int32x4(const int32_t *from)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrwq_s32(from);
#else
    crt_int32x4 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
#endif
}

/* Four bytes, each in a lane. */
CRT_INLINE crt_int32x4 crt_load_int32x4_int8(const int8_t *from)
{
#if defined(__ARM_FEATURE_MVE)
    return vldrbq_s32(from);
#else
    crt_int32x4 v;
    for (int i = 0; i < 4; i++) {
        v.lane[i] = from[i];
    }
    return v;
#endif
}

CRT_INLINE void crt_store_int8x16(int8_t *to, crt_int8x16 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrbq_s8(to, v);
#else
    CRT_COPY(to, &v, sizeof v);
#endif
}

/* The low byte of each lane. */
CRT_INLINE void crt_store_int32x4_int8(int8_t *to, crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrbq_s32(to, v);
#else
    for (int i = 0; i < 4; i++) {
        to[i] = (int8_t)v.lane[i];
    }
#endif
}

CRT_INLINE void crt_store_int32x4(int32_t *to, crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    vstrwq_s32(to, v);
#else
    CRT_COPY(to, &v, sizeof v);
#endif
}

/* The first byte of each of four rows, then the second, ...
 * MISRA 17.7: a register's name is not a call */
CRT_INLINE void crt_store_int8x64(int8_t *to, crt_int8x64 rows)
{
#if defined(CRT_MVE_ASM)
    /* gcc copies all four to where they lie side by side */
    register crt_int8x16 a __asm__("q0") = rows.val[0];
    register crt_int8x16 b __asm__("q1") = rows.val[1];
    register crt_int8x16 c __asm__("q2") = rows.val[2];
    register crt_int8x16 d __asm__("q3") = rows.val[3];
    __asm__ volatile(
        "vst40.8 {q0, q1, q2, q3}, [%0]\n\tvst41.8 {q0, q1, q2, q3}, [%0]\n\t"
        "vst42.8 {q0, q1, q2, q3}, [%0]\n\tvst43.8 {q0, q1, q2, q3}, [%0]"
        :
        : "r"(to), "w"(a), "w"(b), "w"(c), "w"(d)
        : "memory");
#elif defined(__ARM_FEATURE_MVE)
    int8x16x4_t all = {{rows.val[0], rows.val[1], rows.val[2], rows.val[3]}};
    vst4q_s8(to, all);
#else
    for (int i = 0; i < 64; i++) {
        to[i] = rows.val[i % 4].lane[i / 4];
    }
#endif
}

CRT_INLINE crt_int8x64 crt_zip4(crt_int8x16 a, crt_int8x16 b, crt_int8x16 c,
                                crt_int8x16 d)
{
    crt_int8x64 rows = {{a, b, c, d}};
    return rows;
}

/* The first byte of each of two rows, then the second, ...
 * MISRA 17.7: a register's name is not a call */
CRT_INLINE void crt_store_int8x32(int8_t *to, crt_int8x32 rows)
{
#if defined(CRT_MVE_ASM)
    /* gcc copies both to where they lie side by side */
    register crt_int8x16 a __asm__("q0") = rows.val[0];
    register crt_int8x16 b __asm__("q1") = rows.val[1];
    __asm__ volatile("vst20.8 {q0, q1}, [%0]\n\tvst21.8 {q0, q1}, [%0]"
                     :
                     : "r"(to), "w"(a), "w"(b)
                     : "memory");
#elif defined(__ARM_FEATURE_MVE)
    int8x16x2_t both = {{rows.val[0], rows.val[1]}};
    vst2q_s8(to, both);
#else
    for (int i = 0; i < 32; i++) {
        to[i] = rows.val[i % 2].lane[i / 2];
    }
#endif
}

CRT_INLINE crt_int8x32 crt_zip2(crt_int8x16 a, crt_int8x16 b)
{
    crt_int8x32 rows = {{a, b}};
    return rows;
}

/* The same bits as bytes. */
CRT_INLINE crt_int8x16 crt_int32x4_as_int8x16(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vreinterpretq_s8_s32(v);
#else
    crt_int8x16 bytes;
    CRT_COPY(&bytes, &v, sizeof bytes);
    return bytes;
#endif
}

CRT_INLINE crt_int32x4 crt_lanes(int32_t a, int32_t b, int32_t c, int32_t d)
{
#if defined(CRT_MVE_ASM)
    /* gcc moves lane by lane; of a pair, both in one register are undefined */
    crt_int32x4 v;
    __asm__("vmov %q0[2], %q0[0], %1, %3\n\tvmov %q0[3], %q0[1], %2, %4"
            : "=&w"(v), "+&r"(a), "+&r"(b)
            : "r"(c), "r"(d));
    return v;
#elif defined(__ARM_FEATURE_MVE)
    crt_int32x4 v = vuninitializedq_s32();
    v = vsetq_lane_s32(a, v, 0);
    v = vsetq_lane_s32(b, v, 1);
    v = vsetq_lane_s32(c, v, 2);
    return vsetq_lane_s32(d, v, 3);
#else
    crt_int32x4 v = {{a, b, c, d}};
    return v;
#endif
}

/* acc + the sum of all x * w */
CRT_INLINE int32_t crt_dot16(int32_t acc, crt_int8x16 x, crt_int8x16 w)
{
#if defined(CRT_MVE_ASM)
    if (__builtin_constant_p(acc) && acc == 0) {
        __asm__ volatile("vmladav.s8 %0, %q1, %q2"
                         : "=Te"(acc)
                         : "w"(x), "w"(w));
    } else {
        __asm__ volatile("vmladava.s8 %0, %q1, %q2"
                         : "+Te"(acc)
                         : "w"(x), "w"(w));
    }
    return acc;
#elif defined(__ARM_FEATURE_MVE)
    return vmladavaq_s8(acc, x, w);
#else
    for (int i = 0; i < 16; i++) {
        acc += x.lane[i] * w.lane[i];
    }
    return acc;
#endif
}

CRT_C_BODIES_END

#endif
