/* crt/packs.h: what packs vectors of words into bytes, and ends of layers that
 * are the same in all lanes; with Helium (MVE) few instructions, elsewhere a
 * loop. Knows no model.
 * MISRA 10.1, 21.15, in this file: bits are moved as other types */
#ifndef CRT_PACKS_H
#define CRT_PACKS_H

#include "crt/halves.h"

CRT_C_BODIES

/* Eight numbers of 16 bits. */
CRT_INLINE crt_int16x8 crt_lanes8(int32_t a, int32_t b, int32_t c, int32_t d,
                                  int32_t e, int32_t f, int32_t g, int32_t h)
{
    const int16_t all[8] = {(int16_t)a, (int16_t)b, (int16_t)c, (int16_t)d,
                            (int16_t)e, (int16_t)f, (int16_t)g, (int16_t)h};
    return crt_load_int16x8(all);
}

/* The same bits as bytes. */
CRT_INLINE crt_int8x16 crt_int16x8_as_int8x16(crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vreinterpretq_s8_s16(v);
#else
    crt_int8x16 bytes;
    CRT_COPY(&bytes, &v, sizeof bytes);
    return bytes;
#endif
}

/* v and u, in turns, each held within int16. */
CRT_INLINE crt_int16x8 crt_pack8(crt_int32x4 v, crt_int32x4 u)
{
#if defined(CRT_MVE_ASM)
    /* gcc would keep a vector of nothing, and copy it */
    __asm__("vqmovnb.s32 %q0, %q0\n\tvqmovnt.s32 %q0, %q1" : "+&w"(v) : "w"(u));
    return vreinterpretq_s16_s32(v);
#elif defined(__ARM_FEATURE_MVE)
    return vqmovntq_s32(vqmovnbq_s32(vuninitializedq_s16(), v), u);
#else
    crt_int16x8 packed;
    for (int i = 0; i < 4; i++) {
        int32_t a = crt_max_int32(v.lane[i], INT16_MIN);
        int32_t b = crt_max_int32(u.lane[i], INT16_MIN);
        packed.lane[2 * i] = (int16_t)crt_min_int32(a, INT16_MAX);
        packed.lane[2 * i + 1] = (int16_t)crt_min_int32(b, INT16_MAX);
    }
    return packed;
#endif
}

/* The same bits as int16. */
CRT_INLINE crt_int16x8 crt_int32x4_as_int16x8(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vreinterpretq_s16_s32(v);
#else
    crt_int16x8 halves;
    CRT_COPY(&halves, &v, sizeof halves);
    return halves;
#endif
}

CRT_INLINE crt_int32x4 crt_int16x8_as_int32x4(crt_int16x8 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vreinterpretq_s32_s16(v);
#else
    crt_int32x4 words;
    CRT_COPY(&words, &v, sizeof words);
    return words;
#endif
}

/* v >> n, n from 1 to 16; gcc's own takes a number in a register. */
CRT_INLINE crt_int32x4 crt_right4(crt_int32x4 v, int32_t n)
{
#if defined(CRT_MVE_ASM)
    if (__builtin_constant_p(n) != 0) {
        __asm__("vshr.s32 %q0, %q0, %1" : "+w"(v) : "i"(n));
        return v;
    }
#endif
#if defined(__ARM_FEATURE_MVE)
    return vshlq_r_s32(v, -n);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] >>= n;
    }
    return v;
#endif
}

/* Of each two lanes the first is v >> n, held within int16; of the others
 * nothing is said. Then x, of each two lanes the second replaced by the same.
 * Not VQSHRN: of that the GNU assembler of 2022 makes VQRSHRN, which rounds. */
CRT_INLINE crt_int16x8 crt_shifted_even8(crt_int32x4 v, int32_t n)
{
#if defined(CRT_MVE_ASM)
    v = crt_right4(v, n);
    __asm__("vqmovnb.s32 %q0, %q0" : "+w"(v));
    return vreinterpretq_s16_s32(v);
#elif defined(__ARM_FEATURE_MVE)
    return vqmovnbq_s32(vreinterpretq_s16_s32(v), crt_right4(v, n));
#else
    crt_int16x8 x = crt_int32x4_as_int16x8(v);
    for (int i = 0; i < 4; i++) {
        int32_t value = crt_max_int32(v.lane[i] >> n, INT16_MIN);
        x.lane[2 * i] = (int16_t)crt_min_int32(value, INT16_MAX);
    }
    return x;
#endif
}

CRT_INLINE crt_int16x8 crt_shifted_odd8(crt_int16x8 x, crt_int32x4 v, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vqmovntq_s32(x, crt_right4(v, n));
#else
    for (int i = 0; i < 4; i++) {
        int32_t value = crt_max_int32(v.lane[i] >> n, INT16_MIN);
        x.lane[2 * i + 1] = (int16_t)crt_min_int32(value, INT16_MAX);
    }
    return x;
#endif
}

/* x and y, in turns, each held within int8. */
CRT_INLINE crt_int8x16 crt_pack16(crt_int16x8 x, crt_int16x8 y)
{
#if defined(CRT_MVE_ASM)
    __asm__("vqmovnb.s16 %q0, %q0\n\tvqmovnt.s16 %q0, %q1" : "+&w"(x) : "w"(y));
    return vreinterpretq_s8_s16(x);
#elif defined(__ARM_FEATURE_MVE)
    return vqmovntq_s16(vqmovnbq_s16(vuninitializedq_s8(), x), y);
#else
    crt_int8x16 packed;
    for (int i = 0; i < 8; i++) {
        int32_t a = crt_max_int32(x.lane[i], INT8_MIN);
        int32_t b = crt_max_int32(y.lane[i], INT8_MIN);
        packed.lane[2 * i] = (int8_t)crt_min_int32(a, INT8_MAX);
        packed.lane[2 * i + 1] = (int8_t)crt_min_int32(b, INT8_MAX);
    }
    return packed;
#endif
}

/* In each lane: x + n, held within int16. */
CRT_INLINE crt_int16x8 crt_more8(crt_int16x8 x, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vqaddq_n_s16(x, (int16_t)n);
#else
    for (int i = 0; i < 8; i++) {
        int32_t value = crt_max_int32(x.lane[i] + n, INT16_MIN);
        x.lane[i] = (int16_t)crt_min_int32(value, INT16_MAX);
    }
    return x;
#endif
}

/* The same bits as words. */
CRT_INLINE crt_int32x4 crt_int8x16_as_int32x4(crt_int8x16 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vreinterpretq_s32_s8(v);
#else
    crt_int32x4 words;
    CRT_COPY(&words, &v, sizeof words);
    return words;
#endif
}

/* In each lane: v * 256 + n. */
CRT_INLINE crt_int32x4 crt_scale_all4(crt_int32x4 v, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vaddq_n_s32(vshlq_n_s32(v, 8), n);
#else
    for (int i = 0; i < 4; i++) {
        v.lane[i] = v.lane[i] * 256 + n;
    }
    return v;
#endif
}

/* In each lane: v * m / 2^31, then / 2^-n, where n, the low byte of a word, is
 * below 0; ties first up, then away from zero. */
CRT_INLINE crt_int32x4 crt_twice_all4(crt_int32x4 v, int32_t m, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    v = vqrdmulhq_n_s32(v, m); /* less 1 below 0: the high half of 2 v */
    return vrshlq_n_s32(vqdmlahq_n_s32(v, v, 1), n);
#else
    crt_int32x4 ms = {{m, m, m, m}}, ns = {{n, n, n, n}};
    return crt_twice_down4(v, ms, ns);
#endif
}

/* In each lane: v * m / 2^31, then / 2^-n, n the low byte of a word; ties up
 * both times. */
CRT_INLINE crt_int32x4 crt_twice_up_all4(crt_int32x4 v, int32_t m, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vrshlq_n_s32(vqrdmulhq_n_s32(v, m), n);
#else
    for (int i = 0; i < 4; i++) {
        int64_t high = (v.lane[i] * (int64_t)m + (1 << 30)) >> 31;
        int32_t right = -crt_low_byte(n);
        int64_t half = ((int64_t)1 << right) >> 1;
        v.lane[i] = (int32_t)((high + half) >> right);
    }
    return v;
#endif
}

/* In each lane: v * m / 2^(32 - n), n < 0, the low byte of a word; ties up. */
CRT_INLINE crt_int32x4 crt_once_all4(crt_int32x4 v, int32_t m, int32_t n)
{
#if defined(__ARM_FEATURE_MVE)
    return vrshlq_n_s32(vmulhq_s32(v, vdupq_n_s32(m)), n);
#else
    crt_int32x4 ms = {{m, m, m, m}}, ns = {{n, n, n, n}};
    return crt_once4(v, ms, ns);
#endif
}

/* The last lane of four. */
CRT_INLINE int32_t crt_fourth4(crt_int32x4 v)
{
#if defined(__ARM_FEATURE_MVE)
    return vgetq_lane_s32(v, 3);
#else
    return v.lane[3];
#endif
}

CRT_C_BODIES_END

#endif
