/* crt/wide.h: the vectors that kernels for machines like this one are written
 * in: sixteen words, as four vectors of four. The JIT has one instruction for
 * many of them; in C each is a loop. Knows no model.
 * MISRA 10.1, 21.15, in this file: bits are moved as other types */
#ifndef CRT_WIDE_H
#define CRT_WIDE_H

#include "crt/rounds.h"

typedef struct {
    crt_int32x4 val[4];
} crt_int32x16;
typedef struct {
    float lane[16];
} crt_float32x16;

CRT_C_BODIES

CRT_INLINE crt_int32x16 crt_load_int32x16(const int32_t *from)
{
    crt_int32x16 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
}

CRT_INLINE crt_int8x64 crt_load_int8x64(const int8_t *from)
{
    crt_int8x64 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
}

CRT_INLINE crt_float32x16 crt_load_float32x16(const float *from)
{
    crt_float32x16 v;
    CRT_COPY(&v, from, sizeof v);
    return v;
}

CRT_INLINE void crt_store_float32x16(float *to, crt_float32x16 v)
{
    CRT_COPY(to, &v, sizeof v);
}

/* The low byte of each lane. */
CRT_INLINE void crt_store_int32x16_int8(int8_t *to, crt_int32x16 v)
{
    for (int i = 0; i < 4; i++) {
        crt_store_int32x4_int8(&to[4 * i], v.val[i]);
    }
}

/* The four bytes of n, in each lane. */
CRT_INLINE crt_int8x64 crt_spread16(int32_t n)
{
    int32_t lanes[16];
    crt_int8x64 v;
    for (int i = 0; i < 16; i++) {
        lanes[i] = n;
    }
    CRT_COPY(&v, lanes, sizeof v);
    return v;
}

/* Bytes without their sign: 128 more. */
CRT_INLINE crt_int8x16 crt_flip16(crt_int8x16 v)
{
    int8_t bytes[16];
    CRT_COPY(bytes, &v, sizeof bytes);
    for (int i = 0; i < 16; i++) {
        bytes[i] = (int8_t)(bytes[i] ^ -128);
    }
    CRT_COPY(&v, bytes, sizeof v);
    return v;
}

/* In each lane: v + the sum of x * w over its four bytes; x has no sign. */
CRT_INLINE crt_int32x16 crt_dot4x16(crt_int32x16 v, crt_int8x64 x,
                                    crt_int8x64 w)
{
    int32_t sums[16];
    int8_t left[64], right[64];
    CRT_COPY(sums, &v, sizeof sums);
    CRT_COPY(left, &x, sizeof left);
    CRT_COPY(right, &w, sizeof right);
    for (int i = 0; i < 16; i++) {
        for (int j = 4 * i; j < 4 * i + 4; j++) {
            sums[i] += (int32_t)(uint8_t)left[j] * right[j];
        }
    }
    CRT_COPY(&v, sums, sizeof v);
    return v;
}

/* What crt/lanes.h and rounds.h do with four lanes, of each. */
CRT_INLINE crt_int32x16 crt_scale16(crt_int32x16 v, crt_int32x16 u)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_scale4(v.val[i], u.val[i]);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_mulhi16(crt_int32x16 v, crt_int32x16 u)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_mulhi4(v.val[i], u.val[i]);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_add16(crt_int32x16 v, int32_t n)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_add4(v.val[i], n);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_narrow16(crt_int32x16 v, int32_t n, int32_t low,
                                     int32_t high)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_narrow4(v.val[i], n, low, high);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_hold16(crt_int32x16 v, int32_t low, int32_t high,
                                   int32_t n)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_hold4(v.val[i], low, high, n);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_lift16(crt_int32x16 v, crt_int32x16 n)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_lift4(v.val[i], n.val[i]);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_twice16(crt_int32x16 v, crt_int32x16 m,
                                    crt_int32x16 n)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_twice4(v.val[i], m.val[i], n.val[i]);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_once16(crt_int32x16 v, crt_int32x16 m,
                                   crt_int32x16 n)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_once4(v.val[i], m.val[i], n.val[i]);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_away16(crt_int32x16 v, crt_int32x16 m,
                                   crt_int32x16 n)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_away4(v.val[i], m.val[i], n.val[i]);
    }
    return v;
}

CRT_INLINE crt_int32x16 crt_scaled16(crt_int32x16 v, crt_int32x16 scale)
{
    for (int i = 0; i < 4; i++) {
        v.val[i] = crt_scaled4(v.val[i], scale.val[i]);
    }
    return v;
}

/* In each lane: v + x * w, rounded twice; of one x. */
CRT_INLINE crt_float32x16 crt_add_product16(crt_float32x16 v, float x,
                                            crt_float32x16 w)
{
    for (int i = 0; i < 16; i++) {
        v.lane[i] = v.lane[i] + x * w.lane[i];
    }
    return v;
}

/* In each lane: v + x * w, rounded twice. */
CRT_INLINE crt_float32x16 crt_add_products16(crt_float32x16 v, crt_float32x16 x,
                                             crt_float32x16 w)
{
    for (int i = 0; i < 16; i++) {
        v.lane[i] = v.lane[i] + x.lane[i] * w.lane[i];
    }
    return v;
}

/* In each lane: v, but no less than x. */
CRT_INLINE crt_float32x16 crt_at_least16(crt_float32x16 v, float x)
{
    for (int i = 0; i < 16; i++) {
        v.lane[i] = crt_max_float32(v.lane[i], x);
    }
    return v;
}

/* In each lane: v, but no more than x. */
CRT_INLINE crt_float32x16 crt_at_most16(crt_float32x16 v, float x)
{
    for (int i = 0; i < 16; i++) {
        v.lane[i] = crt_min_float32(v.lane[i], x);
    }
    return v;
}

CRT_C_BODIES_END

#endif
