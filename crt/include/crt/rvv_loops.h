/* crt/rvv_loops.h: the vectors of crt/rvv.h on machines without such, as loops
 * over lanes. Included by crt/rvv.h alone.
 * MISRA 10.1, in this file: shifts of signed numbers are arithmetic
 * MISRA 20.7, 20.10, in this file: names of types and functions are made */
#ifndef CRT_RVV_LOOPS_H
#define CRT_RVV_LOOPS_H

#include "crt/intrin.h"

CRT_C_BODIES

#define CRT_RVV_TYPES(LANES)                                                   \
    typedef struct {                                                           \
        int8_t lane[LANES];                                                    \
    } crt_int8v##LANES;                                                        \
    typedef struct {                                                           \
        int16_t lane[LANES];                                                   \
    } crt_int16v##LANES;                                                       \
    typedef struct {                                                           \
        int32_t lane[LANES];                                                   \
    } crt_int32v##LANES;

/* A function whose first n lanes are `value` of lane i; others are 0. */
#define CRT_RVV_EACH(L, result, elem, name, given, value)                      \
    CRT_INLINE result crt_##name##_v##L given                                  \
    {                                                                          \
        result made = {{0}};                                                   \
        for (int i = 0; i < n; i++) {                                          \
            made.lane[i] = (elem)(value);                                      \
        }                                                                      \
        return made;                                                           \
    }
#define CRT_RVV_EACH8(L, name, given, value)                                   \
    CRT_RVV_EACH(L, crt_int8v##L, int8_t, name, given, value)
#define CRT_RVV_EACH16(L, name, given, value)                                  \
    CRT_RVV_EACH(L, crt_int16v##L, int16_t, name, given, value)
#define CRT_RVV_EACH32(L, name, given, value)                                  \
    CRT_RVV_EACH(L, crt_int32v##L, int32_t, name, given, value)

/* The rules of rounding, of one lane: crt/rvv.h. */
CRT_INLINE int64_t crt_rvv_between(int64_t x, int64_t low, int64_t high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

CRT_INLINE int32_t crt_rvv_lift(int32_t v, int32_t m)
{
    int64_t wide = v * ((int64_t)1 << m);
    return (int32_t)crt_rvv_between(wide, INT32_MIN, INT32_MAX);
}

CRT_INLINE int32_t crt_rvv_twice(int32_t v, int32_t m, int32_t u)
{
    int64_t high = (v * (int64_t)m + (1 << 30)) >> 31;
    int64_t half = ((int64_t)1 << -u) >> 1;
    half -= (high < 0 && u < 0) ? 1 : 0;
    return (int32_t)((high + half) >> -u);
}

CRT_INLINE int32_t crt_rvv_even(int32_t v, int32_t x)
{
    int64_t half = ((int64_t)1 << x) >> 1;
    return (int32_t)((v + half - 1 + (v >> x & 1)) >> x);
}

CRT_INLINE int32_t crt_rvv_once(int32_t v, int32_t m, int32_t u)
{
    int64_t high = (v * (int64_t)m) >> 32;
    return (int32_t)((high + ((int64_t)1 << (-1 - u))) >> -u);
}

CRT_INLINE int32_t crt_rvv_away(int32_t v, int32_t m, int32_t u)
{
    int64_t product = v * (int64_t)m;
    int64_t half = (int64_t)1 << (31 - u);
    half -= product < 0 ? 1 : 0;
    return (int32_t)((product + half) >> (32 - u));
}

CRT_INLINE int32_t crt_rvv_precise(int32_t v, int32_t m, int32_t u, int32_t w)
{
    int64_t size = v < 0 ? -(int64_t)v : v;
    int64_t high = (size * m + ((size * (uint32_t)w) >> 32)) >> 32;
    int64_t half = ((int64_t)1 << -u) >> 1;
    int64_t scaled = (high + half) >> -u;
    return (int32_t)(v < 0 ? -scaled : scaled);
}

#define CRT_RVV_MOVES(L, B, H, W)                                              \
    CRT_INLINE int32_t crt_lanes_v##L(int32_t n)                               \
    {                                                                          \
        return n < L ? n : L;                                                  \
    }                                                                          \
    CRT_INLINE void crt_store_int8v##L(int8_t *to, B v, int32_t n)             \
    {                                                                          \
        for (int i = 0; i < n; i++) {                                          \
            to[i] = v.lane[i];                                                 \
        }                                                                      \
    }                                                                          \
    CRT_INLINE void crt_store_int16v##L(int16_t *to, H v, int32_t n)           \
    {                                                                          \
        for (int i = 0; i < n; i++) {                                          \
            to[i] = v.lane[i];                                                 \
        }                                                                      \
    }                                                                          \
    CRT_INLINE void crt_store_int32v##L(int32_t *to, W v, int32_t n)           \
    {                                                                          \
        for (int i = 0; i < n; i++) {                                          \
            to[i] = v.lane[i];                                                 \
        }                                                                      \
    }                                                                          \
    CRT_RVV_EACH8(L, bytes, (const int8_t *from, int32_t n), from[i])          \
    CRT_RVV_EACH16(L, halves, (const int16_t *from, int32_t n), from[i])       \
    CRT_RVV_EACH32(L, words, (const int32_t *from, int32_t n), from[i])        \
    CRT_RVV_EACH16(L, widened, (const int8_t *from, int32_t n), from[i])       \
    CRT_RVV_EACH32(L, long, (const int8_t *from, int32_t n), from[i])          \
    CRT_RVV_EACH32(L, long_halves, (const int16_t *from, int32_t n), from[i])  \
    CRT_RVV_EACH8(L, apart_bytes,                                              \
                  (const int8_t *from, int32_t step, int32_t n),               \
                  from[i * step])                                              \
    CRT_RVV_EACH16(L, apart_halves,                                            \
                   (const int16_t *from, int32_t step, int32_t n),             \
                   from[i * step])                                             \
    CRT_RVV_EACH16(L, fill_halves, (int32_t x, int32_t n), x)                  \
    CRT_RVV_EACH16(L, lowered, (const int8_t *from, int32_t x, int32_t n),     \
                   from[i] - x)                                                \
    CRT_RVV_EACH32(L, all, (int32_t x, int32_t n), x)                          \
    CRT_RVV_EACH8(L, fill, (int32_t x, int32_t n), x)

#define CRT_RVV_SUMS(L, B, H, W)                                               \
    CRT_RVV_EACH32(L, mac_one, (W v, int32_t x, H w, int32_t n),               \
                   v.lane[i] + x * w.lane[i])                                  \
    CRT_RVV_EACH32(L, mac, (W v, H x, H w, int32_t n),                         \
                   v.lane[i] + x.lane[i] * w.lane[i])                          \
    CRT_RVV_EACH16(L, product, (B x, B w, int32_t n), x.lane[i] * w.lane[i])   \
    CRT_RVV_EACH16(L, more, (H h, B x, B w, int32_t n),                        \
                   h.lane[i] + x.lane[i] * w.lane[i])                          \
    CRT_RVV_EACH16(L, halves_plus, (H h, int32_t x, int32_t n), h.lane[i] + x) \
    CRT_RVV_EACH32(L, add, (W v, H h, int32_t n), v.lane[i] + h.lane[i])

#define CRT_RVV_WORDS(L, W)                                                    \
    CRT_RVV_EACH32(L, sum, (W v, W u, int32_t n), v.lane[i] + u.lane[i])       \
    CRT_RVV_EACH32(L, less, (W v, W u, int32_t n), v.lane[i] - u.lane[i])      \
    CRT_RVV_EACH32(L, plus, (W v, int32_t x, int32_t n), v.lane[i] + x)        \
    CRT_RVV_EACH32(L, times, (W v, int32_t x, int32_t n), v.lane[i] * x)       \
    CRT_RVV_EACH32(L, products, (W v, W u, int32_t n), v.lane[i] * u.lane[i])  \
    CRT_RVV_EACH32(L, correct, (W v, int32_t x, int32_t low, int32_t n),       \
                   v.lane[i] + x + (v.lane[i] < 0 ? low : 0))                  \
    CRT_RVV_EACH32(L, right, (W v, int32_t x, int32_t n), v.lane[i] >> x)      \
    CRT_RVV_EACH32(L, even, (W v, int32_t x, int32_t n),                       \
                   crt_rvv_even(v.lane[i], x))                                 \
    CRT_RVV_EACH32(L, line, (W v, int32_t x, W u, int32_t n),                  \
                   v.lane[i] * x + u.lane[i])                                  \
    CRT_RVV_EACH32(L, high, (W v, W u, int32_t n),                             \
                   crt_mulhi(v.lane[i], u.lane[i]))                            \
    CRT_RVV_EACH32(L, high_one, (W v, int32_t x, int32_t n),                   \
                   crt_mulhi(v.lane[i], x))

#define CRT_RVV_LOOP_BYTES(L, B, H, W)                                         \
    CRT_RVV_EACH8(L, shifted, (W v, int32_t x, int32_t n),                     \
                  crt_rvv_between(v.lane[i] >> x, INT8_MIN, INT8_MAX))         \
    CRT_RVV_EACH8(L, raised, (W v, int32_t x, int32_t n),                      \
                  crt_rvv_between((int64_t)v.lane[i] + x, INT8_MIN, INT8_MAX)) \
    CRT_RVV_EACH16(L, short, (W v, int32_t x, int32_t n),                      \
                   crt_rvv_between(v.lane[i] >> x, INT16_MIN, INT16_MAX))      \
    CRT_RVV_EACH16(L, hold_halves,                                             \
                   (H b, int32_t low, int32_t high, int32_t n),                \
                   crt_rvv_between(b.lane[i], low, high))                      \
    CRT_RVV_EACH16(L, most_halves, (H x, H w, int32_t n),                      \
                   x.lane[i] > w.lane[i] ? x.lane[i] : w.lane[i])              \
    CRT_RVV_EACH8(L, hold, (B b, int32_t low, int32_t high, int32_t n),        \
                  crt_rvv_between(b.lane[i], low, high))                       \
    CRT_RVV_EACH8(L, most, (B x, B w, int32_t n),                              \
                  x.lane[i] > w.lane[i] ? x.lane[i] : w.lane[i])

/* One number of n lanes: what `step` makes of it and of each lane. */
#define CRT_RVV_ONE(L, name, V, start, step)                                   \
    CRT_INLINE int32_t crt_##name##_v##L(V v, int32_t n)                       \
    {                                                                          \
        int32_t made = start;                                                  \
        for (int i = 0; i < n; i++) {                                          \
            made = step;                                                       \
        }                                                                      \
        return made;                                                           \
    }

#define CRT_RVV_LOOP_TABLES(L, B, H, W)                                        \
    CRT_RVV_EACH8(L, table, (const int8_t *table, B b, int32_t n),             \
                  table[b.lane[i] + 128])                                      \
    CRT_RVV_EACH32(L, entries, (const int32_t *table, H h, int32_t n),         \
                   table[h.lane[i]])                                           \
    CRT_RVV_ONE(L, total, W, 0, made + v.lane[i])                              \
    CRT_RVV_ONE(L, greatest, B, INT8_MIN, v.lane[i] > made ? v.lane[i] : made)

#define CRT_RVV_LOOP_RULES(L, W)                                               \
    CRT_RVV_EACH32(L, lift, (W v, W m, int32_t n),                             \
                   crt_rvv_lift(v.lane[i], m.lane[i]))                         \
    CRT_RVV_EACH32(L, twice, (W v, W m, W u, int32_t n),                       \
                   crt_rvv_twice(v.lane[i], m.lane[i], u.lane[i]))             \
    CRT_RVV_EACH32(L, once, (W v, W m, W u, int32_t n),                        \
                   crt_rvv_once(v.lane[i], m.lane[i], u.lane[i]))              \
    CRT_RVV_EACH32(L, away, (W v, W m, W u, int32_t n),                        \
                   crt_rvv_away(v.lane[i], m.lane[i], u.lane[i]))              \
    CRT_RVV_EACH32(L, up_one, (W v, int32_t x, int32_t n),                     \
                   crt_rvv_twice(v.lane[i], x, 0))                             \
    CRT_RVV_EACH32(L, twice_one, (W v, int32_t x, int32_t low, int32_t n),     \
                   crt_rvv_twice(v.lane[i], x, low))                           \
    CRT_RVV_EACH32(L, once_one, (W v, int32_t x, int32_t low, int32_t n),      \
                   crt_rvv_once(v.lane[i], x, low))                            \
    CRT_RVV_EACH32(                                                            \
        L, precise, (W v, W m, W u, W w, int32_t n),                           \
        crt_rvv_precise(v.lane[i], m.lane[i], u.lane[i], w.lane[i]))

#define CRT_RVV_ALL(L)                                                         \
    CRT_RVV_TYPES(L)                                                           \
    CRT_RVV_MOVES(L, crt_int8v##L, crt_int16v##L, crt_int32v##L)               \
    CRT_RVV_SUMS(L, crt_int8v##L, crt_int16v##L, crt_int32v##L)                \
    CRT_RVV_WORDS(L, crt_int32v##L)                                            \
    CRT_RVV_LOOP_BYTES(L, crt_int8v##L, crt_int16v##L, crt_int32v##L)          \
    CRT_RVV_LOOP_TABLES(L, crt_int8v##L, crt_int16v##L, crt_int32v##L)         \
    CRT_RVV_LOOP_RULES(L, crt_int32v##L)

CRT_RVV_ALL(16)
CRT_RVV_ALL(32)

CRT_C_BODIES_END

#endif
