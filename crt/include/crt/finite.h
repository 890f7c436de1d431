/* crt/finite.h: whether numbers from a sensor are numbers, before a model reads
 * them. Knows no model. MISRA 10.1, in this file: it works on bits
 *
 *     if (!crt_all_finite(readings, 128u))
 *         return SENSOR_FAILED;
 *     kws_set_input(&kws, readings); */
#ifndef CRT_FINITE_H
#define CRT_FINITE_H

#include "crt/bits.h"

CRT_C_BODIES

/* 1 if no value is infinite or NaN, else 0. It looks at bits: no compiler's
 * -ffast-math takes it away, and no FPU is needed.
 *
 * Shapes  values[count]; NULL, if count is 0
 * Thread  re-entrant
 * Time    about five instructions a value */
CRT_INLINE int crt_all_finite(const float *values, uint32_t count)
{
    uint32_t i;
    for (i = 0; i < count; i++) {
        int32_t bits = crt_float32_as_int32(values[i]);
        if ((bits & 0x7F800000) == 0x7F800000) {
            return 0;
        }
    }
    return 1;
}

/* The same of float16, which are handed over as their bits. */
CRT_INLINE int crt_all_finite16(const uint16_t *values, uint32_t count)
{
    uint32_t i;
    for (i = 0; i < count; i++) {
        if ((values[i] & 0x7C00u) == 0x7C00u) {
            return 0;
        }
    }
    return 1;
}

CRT_C_BODIES_END

#endif
