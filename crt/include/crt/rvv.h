/* crt/rvv.h: vectors of RISC-V's V and Zve32x. A type with v16 in its name has
 * 16 lanes of registers of 128 bits, more of longer ones, one with v32 twice
 * as many; an operation is of the first n. Without riscv_vector.h each is a
 * loop. Knows no model.
 * MISRA 20.7, 20.10, in this file: names of types and functions are made */
#ifndef CRT_RVV_H
#define CRT_RVV_H

#include "crt/intrin.h"

#if defined(__riscv_v_intrinsic)
#include <riscv_vector.h>
#include <stddef.h>
#endif

CRT_C_BODIES

/* A function for vectors of LANES lanes, of that result. */
#define CRT_RVV(result, name, LANES) CRT_INLINE result crt_##name##_v##LANES

#if defined(__riscv_v_intrinsic)

/* M1, M2, M4: the registers of vectors of bytes, halves and words. */
#define CRT_RVV_TYPES(LANES, M1, M2, M4)                                       \
    typedef vint8##M1##_t crt_int8v##LANES;                                    \
    typedef vint16##M2##_t crt_int16v##LANES;                                  \
    typedef vint32##M4##_t crt_int32v##LANES;

/* Loads, of n elements and nothing behind them; the store of n lanes. */
#define CRT_RVV_MOVES(L, M1, M2, M4, B, H, W)                                  \
    CRT_RVV(int32_t, lanes, L)(int32_t n)                                      \
    {                                                                          \
        return (int32_t)__riscv_vsetvl_e32##M4((size_t)n);                     \
    }                                                                          \
    CRT_RVV(B, bytes, L)(const int8_t *from, int32_t n)                        \
    {                                                                          \
        return __riscv_vle8_v_i8##M1(from, (size_t)n);                         \
    }                                                                          \
    CRT_RVV(H, halves, L)(const int16_t *from, int32_t n)                      \
    {                                                                          \
        return __riscv_vle16_v_i16##M2(from, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, words, L)(const int32_t *from, int32_t n)                       \
    {                                                                          \
        return __riscv_vle32_v_i32##M4(from, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(H, widened, L)(const int8_t *from, int32_t n)                      \
    {                                                                          \
        return __riscv_vsext_vf2_i16##M2(crt_bytes_v##L(from, n), (size_t)n);  \
    }                                                                          \
    CRT_RVV(W, long, L)(const int8_t *from, int32_t n)                         \
    {                                                                          \
        return __riscv_vsext_vf4_i32##M4(crt_bytes_v##L(from, n), (size_t)n);  \
    }                                                                          \
    CRT_RVV(W, long_halves, L)(const int16_t *from, int32_t n)                 \
    {                                                                          \
        return __riscv_vsext_vf2_i32##M4(crt_halves_v##L(from, n), (size_t)n); \
    }                                                                          \
    CRT_RVV(H, lowered, L)(const int8_t *from, int32_t x, int32_t n)           \
    {                                                                          \
        B b = crt_bytes_v##L(from, n);                                         \
        return __riscv_vwsub_vx_i16##M2(b, (int8_t)x, (size_t)n);              \
    }                                                                          \
    CRT_RVV(B, apart_bytes, L)(const int8_t *from, int32_t step, int32_t n)    \
    {                                                                          \
        return __riscv_vlse8_v_i8##M1(from, (ptrdiff_t)step, (size_t)n);       \
    }                                                                          \
    CRT_RVV(H, apart_halves, L)(const int16_t *from, int32_t step, int32_t n)  \
    {                                                                          \
        return __riscv_vlse16_v_i16##M2(from, 2 * (ptrdiff_t)step, (size_t)n); \
    }                                                                          \
    CRT_RVV(W, all, L)(int32_t x, int32_t n)                                   \
    {                                                                          \
        return __riscv_vmv_v_x_i32##M4(x, (size_t)n);                          \
    }                                                                          \
    CRT_RVV(B, fill, L)(int32_t x, int32_t n)                                  \
    {                                                                          \
        return __riscv_vmv_v_x_i8##M1((int8_t)x, (size_t)n);                   \
    }                                                                          \
    CRT_RVV(H, fill_halves, L)(int32_t x, int32_t n)                           \
    {                                                                          \
        return __riscv_vmv_v_x_i16##M2((int16_t)x, (size_t)n);                 \
    }                                                                          \
    CRT_INLINE void crt_store_int16v##L(int16_t *to, H v, int32_t n)           \
    {                                                                          \
        __riscv_vse16_v_i16##M2(to, v, (size_t)n);                             \
    }                                                                          \
    CRT_INLINE void crt_store_int8v##L(int8_t *to, B v, int32_t n)             \
    {                                                                          \
        __riscv_vse8_v_i8##M1(to, v, (size_t)n);                               \
    }                                                                          \
    CRT_INLINE void crt_store_int32v##L(int32_t *to, W v, int32_t n)           \
    {                                                                          \
        __riscv_vse32_v_i32##M4(to, v, (size_t)n);                             \
    }

/* Products, and sums of them. */
#define CRT_RVV_SUMS(L, M1, M2, M4, B, H, W)                                   \
    CRT_RVV(W, mac_one, L)(W v, int32_t x, H w, int32_t n)                     \
    {                                                                          \
        return __riscv_vwmacc_vx_i32##M4(v, (int16_t)x, w, (size_t)n);         \
    }                                                                          \
    CRT_RVV(W, mac, L)(W v, H x, H w, int32_t n)                               \
    {                                                                          \
        return __riscv_vwmacc_vv_i32##M4(v, x, w, (size_t)n);                  \
    }                                                                          \
    CRT_RVV(H, product, L)(B x, B w, int32_t n)                                \
    {                                                                          \
        return __riscv_vwmul_vv_i16##M2(x, w, (size_t)n);                      \
    }                                                                          \
    CRT_RVV(H, more, L)(H h, B x, B w, int32_t n)                              \
    {                                                                          \
        return __riscv_vwmacc_vv_i16##M2(h, x, w, (size_t)n);                  \
    }                                                                          \
    CRT_RVV(H, halves_plus, L)(H h, int32_t x, int32_t n)                      \
    {                                                                          \
        return __riscv_vadd_vx_i16##M2(h, (int16_t)x, (size_t)n);              \
    }                                                                          \
    CRT_RVV(W, add, L)(W v, H h, int32_t n)                                    \
    {                                                                          \
        return __riscv_vwadd_wv_i32##M4(v, h, (size_t)n);                      \
    }

/* Arithmetic of words. */
#define CRT_RVV_WORDS(L, M4, W)                                                \
    CRT_RVV(W, sum, L)(W v, W u, int32_t n)                                    \
    {                                                                          \
        return __riscv_vadd_vv_i32##M4(v, u, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, less, L)(W v, W u, int32_t n)                                   \
    {                                                                          \
        return __riscv_vsub_vv_i32##M4(v, u, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, plus, L)(W v, int32_t x, int32_t n)                             \
    {                                                                          \
        return __riscv_vadd_vx_i32##M4(v, x, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, times, L)(W v, int32_t x, int32_t n)                            \
    {                                                                          \
        return __riscv_vmul_vx_i32##M4(v, x, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, products, L)(W v, W u, int32_t n)                               \
    {                                                                          \
        return __riscv_vmul_vv_i32##M4(v, u, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, correct, L)(W v, int32_t x, int32_t low, int32_t n)             \
    {                                                                          \
        W sign = __riscv_vsra_vx_i32##M4(v, 31u, (size_t)n);                   \
        sign = __riscv_vand_vx_i32##M4(sign, low, (size_t)n);                  \
        v = __riscv_vadd_vv_i32##M4(v, sign, (size_t)n);                       \
        return __riscv_vadd_vx_i32##M4(v, x, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(W, right, L)(W v, int32_t x, int32_t n)                            \
    {                                                                          \
        return __riscv_vsra_vx_i32##M4(v, (size_t)x, (size_t)n);               \
    }                                                                          \
    CRT_RVV(W, even, L)(W v, int32_t x, int32_t n)                             \
    {                                                                          \
        return __riscv_vssra_vx_i32##M4(v, (size_t)x, 1u, (size_t)n);          \
    }                                                                          \
    CRT_RVV(W, line, L)(W v, int32_t x, W u, int32_t n)                        \
    {                                                                          \
        return __riscv_vmadd_vx_i32##M4(v, x, u, (size_t)n);                   \
    }                                                                          \
    CRT_RVV(W, high, L)(W v, W u, int32_t n)                                   \
    {                                                                          \
        return __riscv_vmulh_vv_i32##M4(v, u, (size_t)n);                      \
    }                                                                          \
    CRT_RVV(W, high_one, L)(W v, int32_t x, int32_t n)                         \
    {                                                                          \
        return __riscv_vmulh_vx_i32##M4(v, x, (size_t)n);                      \
    }

#include "crt/rvv_rounds.h"

#define CRT_RVV_ALL(L, M1, M2, M4, BITS)                                       \
    CRT_RVV_TYPES(L, M1, M2, M4)                                               \
    CRT_RVV_MOVES(L, M1, M2, M4, crt_int8v##L, crt_int16v##L, crt_int32v##L)   \
    CRT_RVV_SUMS(L, M1, M2, M4, crt_int8v##L, crt_int16v##L, crt_int32v##L)    \
    CRT_RVV_WORDS(L, M4, crt_int32v##L)                                        \
    CRT_RVV_BYTES(L, M1, M2, M4, crt_int8v##L, crt_int16v##L, crt_int32v##L)   \
    CRT_RVV_TABLES(L, M1, M2, M4, crt_int8v##L, crt_int16v##L, crt_int32v##L)  \
    CRT_RVV_RULES(L, M4, crt_int32v##L, BITS)

CRT_RVV_ALL(16, m1, m2, m4, 8)
CRT_RVV_ALL(32, m2, m4, m8, 4)

#else
#include "crt/rvv_loops.h"
#endif

CRT_C_BODIES_END

#endif
