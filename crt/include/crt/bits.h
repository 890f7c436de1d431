/* crt/bits.h: floats as the integers that have their bits, and back.
 * Knows no model. MISRA 21.15, in this file: bits are moved as other types */
#ifndef CRT_BITS_H
#define CRT_BITS_H

#include "crt/inline.h"

CRT_C_BODIES

/* The same bits as the other type. */
CRT_INLINE float crt_int32_as_float32(int32_t bits)
{
    float value;
    CRT_COPY(&value, &bits, sizeof value);
    return value;
}

CRT_INLINE int32_t crt_float32_as_int32(float value)
{
    int32_t bits;
    CRT_COPY(&bits, &value, sizeof bits);
    return bits;
}

CRT_INLINE double crt_int64_as_float64(int64_t bits)
{
    double value;
    CRT_COPY(&value, &bits, sizeof value);
    return value;
}

CRT_INLINE int64_t crt_float64_as_int64(double value)
{
    int64_t bits;
    CRT_COPY(&bits, &value, sizeof bits);
    return bits;
}

CRT_C_BODIES_END

#endif
