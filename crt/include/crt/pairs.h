/* crt/pairs.h: complex numbers of two int16 in an int32, the real part in the
 * low half, as transforms need them. Knows no model.
 * MISRA 7.2, 10.1, 10.7, 20.7, in this file: they work on bits */
#ifndef CRT_PAIRS_H
#define CRT_PAIRS_H

#include "crt/intrin.h"

CRT_C_BODIES

/* Halves of sums and differences; "turned": of x and w times i, which has its
 * real part in the low half. */
CRT_HALVES(crt_half_add2, "shadd16 %0, %1, %2", ((x >> 16) + (w >> 16)) >> 1,
           ((int16_t)x + (int16_t)w) >> 1)
CRT_HALVES(crt_half_sub2, "shsub16 %0, %1, %2", ((x >> 16) - (w >> 16)) >> 1,
           ((int16_t)x - (int16_t)w) >> 1)
CRT_HALVES(crt_half_add_turned, "shasx %0, %1, %2",
           ((x >> 16) + (int16_t)w) >> 1, ((int16_t)x - (w >> 16)) >> 1)
CRT_HALVES(crt_half_sub_turned, "shsax %0, %1, %2",
           ((x >> 16) - (int16_t)w) >> 1, ((int16_t)x + (w >> 16)) >> 1)
/* Held within int16. */
CRT_INLINE int32_t crt_held16(int32_t x)
{
    return crt_min_int32(crt_max_int32(x, INT16_MIN), INT16_MAX);
}
CRT_HALVES(crt_held_add2, "qadd16 %0, %1, %2",
           crt_held16((x >> 16) + (w >> 16)),
           crt_held16((int16_t)x + (int16_t)w))
CRT_HALVES(crt_held_sub2, "qsub16 %0, %1, %2",
           crt_held16((x >> 16) - (w >> 16)),
           crt_held16((int16_t)x - (int16_t)w))
CRT_HALVES(crt_held_add_turned, "qasx %0, %1, %2",
           crt_held16((x >> 16) + (int16_t)w),
           crt_held16((int16_t)x - (w >> 16)))
CRT_HALVES(crt_held_sub_turned, "qsax %0, %1, %2",
           crt_held16((x >> 16) - (int16_t)w),
           crt_held16((int16_t)x + (w >> 16)))
/* acc + the real or the imaginary part of x * w, in which no sum overflows. */
#if defined(CRT_DSP)
#define CRT_PRODUCT(name, code, value)                                         \
    CRT_INLINE int32_t name(int32_t x, int32_t w, int32_t acc)                 \
    {                                                                          \
        int32_t part;                                                          \
        __asm__(code " %0, %1, %2, %3"                                         \
                : "=r"(part)                                                   \
                : "r"(x), "r"(w), "r"(acc));                                   \
        return part;                                                           \
    }
#else
#define CRT_PRODUCT(name, code, value)                                         \
    CRT_INLINE int32_t name(int32_t x, int32_t w, int32_t acc)                 \
    {                                                                          \
        return acc + (value);                                                  \
    }
#endif
CRT_PRODUCT(crt_times_real, "smlsd",
            ((int16_t)x * (int16_t)w - (x >> 16) * (w >> 16)))
CRT_PRODUCT(crt_times_imaginary, "smladx",
            ((int16_t)x * (w >> 16) + (x >> 16) * (int16_t)w))

CRT_C_BODIES_END

#endif
