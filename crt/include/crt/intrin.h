/* crt/intrin.h: the small operations that generated kernels are written in.
 * Knows no model. Needs only the compiler and string.h. */
#ifndef CRT_INTRIN_H
#define CRT_INTRIN_H

#include <stdint.h>
#include <string.h>

/* Functions that must vanish into their caller, also at -Os. */
#ifndef CRT_INLINE
#if defined(__GNUC__)
#define CRT_INLINE static inline __attribute__((always_inline, unused))
#else
#define CRT_INLINE static inline
#endif
#endif

CRT_INLINE int32_t crt_min_int32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

CRT_INLINE int32_t crt_max_int32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

CRT_INLINE int64_t crt_min_int64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

CRT_INLINE int64_t crt_max_int64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* NaN in `a` gives b, as in LLVM's ordered comparison. */
CRT_INLINE float crt_min_float32(float a, float b)
{
    return a < b ? a : b;
}

CRT_INLINE float crt_max_float32(float a, float b)
{
    return b < a ? a : b;
}

/* The same bits as the other type. */
CRT_INLINE float crt_int32_as_float32(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

CRT_INLINE int32_t crt_float32_as_int32(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
