/* crt/intrin.h: small operations of generated kernels. Knows no model.
 * MISRA 7.2, 10.1, 10.7, 20.7, 21.15, in this file: they work on bits */
#ifndef CRT_INTRIN_H
#define CRT_INTRIN_H

#include "crt/bits.h"

/* One rounding for each product and sum where no flag says so, as Arduino. */
#if defined(__clang__) || defined(__ICCARM__) || defined(__ICCRISCV__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__FP_FAST_FMAF) && !defined(__STRICT_ANSI__) /* GCC, gnu99 */
#pragma GCC optimize("fp-contract=off")
#endif

CRT_C_BODIES

#define CRT_EITHER(name, type, first)                                          \
    CRT_INLINE type name(type a, type b)                                       \
    {                                                                          \
        return (first) ? a : b;                                                \
    }
CRT_EITHER(crt_min_int32, int32_t, a < b)
CRT_EITHER(crt_max_int32, int32_t, a > b)
CRT_EITHER(crt_min_int64, int64_t, a < b)
CRT_EITHER(crt_max_int64, int64_t, a > b)
/* NaN in `a` stays, NaN in b does not count. */
CRT_EITHER(crt_min_float32, float, !(b < a))
CRT_EITHER(crt_max_float32, float, !(a < b))

/* Four bytes at any address. */
CRT_INLINE int32_t crt_load_int32(const void *from)
{
    int32_t word;
    CRT_COPY(&word, from, sizeof word);
    return word;
}

CRT_INLINE void crt_store_int32(void *to, int32_t word)
{
    CRT_COPY(to, &word, sizeof word);
}

/* Below, an int32 may hold two int16 or four int8, the first in the low bits:
 * Cortex-M4, M7 and M33 have an instruction for each. */
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(CRT_ASM)
#define CRT_DSP 1
#endif

/* acc + x.low * w.low + x.high * w.high */
CRT_INLINE int32_t crt_dot2(int32_t x, int32_t w, int32_t acc)
{
#if defined(CRT_DSP)
    if (__builtin_constant_p(acc) && acc == 0) {
        __asm__ volatile("smuad %0, %1, %2" : "=r"(acc) : "r"(x), "r"(w));
    } else {
        __asm__ volatile("smlad %0, %1, %2, %0" : "+r"(acc) : "r"(x), "r"(w));
    }
    return acc;
#else
    return acc + (int16_t)x * (int16_t)w + (x >> 16) * (w >> 16);
#endif
}

/* The same, of a sum of 64 bits. */
CRT_INLINE int64_t crt_long_dot2(int32_t x, int32_t w, int64_t acc)
{
#if defined(CRT_DSP)
    __asm__ volatile("smlald %Q0, %R0, %1, %2" : "+r"(acc) : "r"(x), "r"(w));
    return acc;
#else
    return acc + (int16_t)x * (int16_t)w + (x >> 16) * (w >> 16);
#endif
}

/* acc + x * w */
CRT_INLINE int64_t crt_long_mla(int32_t x, int32_t w, int64_t acc)
{
    return acc + (int64_t)x * w;
}

/* acc + the product of a half of x and a half of w. */
#if defined(CRT_DSP)
#define CRT_MLA(name, code, value)                                             \
    CRT_INLINE int32_t name(int32_t x, int32_t w, int32_t acc)                 \
    {                                                                          \
        int32_t sum;                                                           \
        __asm__ volatile(code " %0, %1, %2, %3"                                \
                         : "=r"(sum)                                           \
                         : "r"(x), "r"(w), "r"(acc));                          \
        return sum;                                                            \
    }
#else
#define CRT_MLA(name, code, value)                                             \
    CRT_INLINE int32_t name(int32_t x, int32_t w, int32_t acc)                 \
    {                                                                          \
        return acc + (value);                                                  \
    }
#endif
CRT_MLA(crt_mla_low, "smlabb", (int16_t)x *(int16_t)w)
CRT_MLA(crt_mla_low_high, "smlabt", (int16_t)x *(w >> 16))
CRT_MLA(crt_mla_high_low, "smlatb", (x >> 16) * (int16_t)w)
CRT_MLA(crt_mla_high, "smlatt", (x >> 16) * (w >> 16))

/* Two int16 of x and w: */
#if defined(CRT_DSP)
#define CRT_HALVES(name, code, high, low)                                      \
    CRT_INLINE int32_t name(int32_t x, int32_t w)                              \
    {                                                                          \
        int32_t pair;                                                          \
        __asm__(code : "=r"(pair) : "r"(x), "r"(w));                           \
        return pair;                                                           \
    }
#else
#define CRT_HALVES(name, code, high, low)                                      \
    CRT_INLINE int32_t name(int32_t x, int32_t w)                              \
    {                                                                          \
        return (high) * 65536 + ((low) & 0xFFFF);                              \
    }
#endif
/* x.low, w.low; x.high, w.high; sums and differences, which must fit int16. */
CRT_HALVES(crt_low_halves, "pkhbt %0, %1, %2, lsl #16", (int16_t)w, x)
CRT_HALVES(crt_high_halves, "pkhtb %0, %2, %1, asr #16", w >> 16, x >> 16)
CRT_HALVES(crt_add2, "sadd16 %0, %1, %2", (x >> 16) + (w >> 16), x + w)
CRT_HALVES(crt_sub2, "ssub16 %0, %1, %2", (x >> 16) - (w >> 16), x - w)
/* Bytes 0 and 2, or 1 and 3, of w, added to the two int16 of x. */
CRT_HALVES(crt_add_even_bytes, "sxtab16 %0, %1, %2",
           (x >> 16) + (int8_t)(w >> 16), x + (int8_t)w)
CRT_HALVES(crt_add_odd_bytes, "sxtab16 %0, %1, %2, ror #8",
           (x >> 16) + (w >> 24), x + (int8_t)(w >> 8))

/* Bytes 0 and 2, or 1 and 3, as two int16. */
#if defined(CRT_DSP)
#define CRT_BYTES(name, code, high, low)                                       \
    CRT_INLINE int32_t name(int32_t x)                                         \
    {                                                                          \
        int32_t pair;                                                          \
        __asm__ volatile(code : "=r"(pair) : "r"(x));                          \
        return pair;                                                           \
    }
#else
#define CRT_BYTES(name, code, high, low)                                       \
    CRT_INLINE int32_t name(int32_t x)                                         \
    {                                                                          \
        return (high) * 65536 + ((low) & 0xFFFF);                              \
    }
#endif
CRT_BYTES(crt_even_bytes, "sxtb16 %0, %1", (int8_t)(x >> 16), (int8_t)x)
CRT_BYTES(crt_odd_bytes, "sxtb16 %0, %1, ror #8", x >> 24, (int8_t)(x >> 8))

/* The greater of each two bytes, signed. */
CRT_INLINE int32_t crt_max_bytes(int32_t x, int32_t w)
{
#if defined(CRT_DSP)
    int32_t most;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2"
            : "=&r"(most)
            : "r"(x), "r"(w)
            : "cc");
    return most;
#else
    return crt_max_int32(x >> 24, w >> 24) * 0x1000000 +
           (crt_max_int32((int8_t)(x >> 16), (int8_t)(w >> 16)) & 0xFF) *
               0x10000 +
           (crt_max_int32((int8_t)(x >> 8), (int8_t)(w >> 8)) & 0xFF) * 0x100 +
           (crt_max_int32((int8_t)x, (int8_t)w) & 0xFF);
#endif
}

/* Held within int8. */
CRT_INLINE int32_t crt_saturate8(int32_t x)
{
#if defined(CRT_SSAT8)
    return CRT_SSAT8(x);
#elif defined(__ARM_FEATURE_SAT) && defined(CRT_ASM) && !defined(__clang__)
    int32_t y;
    __asm__("ssat %0, #8, %1" : "=r"(y) : "r"(x));
    return y;
#else
    return crt_min_int32(crt_max_int32(x, -128), 127);
#endif
}

/* Held within int16. */
CRT_INLINE int32_t crt_saturate16(int32_t x)
{
#if defined(CRT_SSAT16)
    return CRT_SSAT16(x);
#else
    return crt_min_int32(crt_max_int32(x, -32768), 32767);
#endif
}

/* Differences of bytes, held within int8. */
CRT_INLINE int32_t crt_held_sub_bytes(int32_t x, int32_t w)
{
#if defined(CRT_DSP)
    int32_t less;
    __asm__("qsub8 %0, %1, %2" : "=r"(less) : "r"(x), "r"(w));
    return less;
#else
    return crt_saturate8((x >> 24) - (w >> 24)) * 0x1000000 +
           (crt_saturate8((int8_t)(x >> 16) - (int8_t)(w >> 16)) & 0xFF) *
               0x10000 +
           (crt_saturate8((int8_t)(x >> 8) - (int8_t)(w >> 8)) & 0xFF) * 0x100 +
           (crt_saturate8((int8_t)x - (int8_t)w) & 0xFF);
#endif
}

/* acc + the high half of the product. */
CRT_INLINE int32_t crt_mulhi_add(int32_t x, int32_t w, int32_t acc)
{
#if defined(CRT_DSP)
    int32_t sum;
    __asm__("smmla %0, %1, %2, %3" : "=r"(sum) : "r"(x), "r"(w), "r"(acc));
    return sum;
#else
    return acc + (int32_t)(((int64_t)x * w) >> 32);
#endif
}

/* The same, rounded to nearest. */
CRT_INLINE int32_t crt_mulhi_add_round(int32_t x, int32_t w, int32_t acc)
{
#if defined(CRT_DSP)
    int32_t sum;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(x), "r"(w), "r"(acc));
    return sum;
#else
    return acc + (int32_t)(((int64_t)x * w + INT64_C(0x80000000)) >> 32);
#endif
}

/* The high half of the product. */
CRT_INLINE int32_t crt_mulhi(int32_t x, int32_t w)
{
#if defined(CRT_DSP) && !defined(__clang__)
    int32_t high;
    __asm__("smmul %0, %1, %2" : "=r"(high) : "r"(x), "r"(w));
    return high;
#else
    return (int32_t)(((int64_t)x * w) >> 32);
#endif
}

CRT_C_BODIES_END
#endif
