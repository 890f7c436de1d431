/* crt/rvv_rounds.h: how vectors of crt/rvv.h become narrower again: ends of
 * types, rules of rounding, sums over lanes; and what tables have for them.
 * Included by crt/rvv.h alone, where there is riscv_vector.h.
 * MISRA 20.7, 20.10, in this file: names of types and functions are made */
#ifndef CRT_RVV_ROUNDS_H
#define CRT_RVV_ROUNDS_H

#include "crt/intrin.h"

#if defined(__riscv_v_intrinsic)
#include <riscv_vector.h>
#endif

CRT_C_BODIES

/* Words held within int8 or int16, shifted to the right or raised before. */
#define CRT_RVV_BYTES(L, M1, M2, M4, B, H, W)                                  \
    CRT_RVV(B, shifted, L)(W v, int32_t x, int32_t n)                          \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        H h = __riscv_vnclip_wx_i16##M2(v, (size_t)x, 2u, k);                  \
        return __riscv_vnclip_wx_i8##M1(h, 0u, 2u, k);                         \
    }                                                                          \
    CRT_RVV(B, raised, L)(W v, int32_t x, int32_t n)                           \
    {                                                                          \
        v = __riscv_vsadd_vx_i32##M4(v, x, (size_t)n);                         \
        return crt_shifted_v##L(v, 0, n);                                      \
    }                                                                          \
    CRT_RVV(H, short, L)(W v, int32_t x, int32_t n)                            \
    {                                                                          \
        return __riscv_vnclip_wx_i16##M2(v, (size_t)x, 2u, (size_t)n);         \
    }                                                                          \
    CRT_RVV(B, hold, L)(B b, int32_t low, int32_t high, int32_t n)             \
    {                                                                          \
        b = __riscv_vmax_vx_i8##M1(b, (int8_t)low, (size_t)n);                 \
        return __riscv_vmin_vx_i8##M1(b, (int8_t)high, (size_t)n);             \
    }                                                                          \
    CRT_RVV(H, hold_halves, L)(H b, int32_t low, int32_t high, int32_t n)      \
    {                                                                          \
        b = __riscv_vmax_vx_i16##M2(b, (int16_t)low, (size_t)n);               \
        return __riscv_vmin_vx_i16##M2(b, (int16_t)high, (size_t)n);           \
    }                                                                          \
    CRT_RVV(H, most_halves, L)(H x, H w, int32_t n)                            \
    {                                                                          \
        return __riscv_vmax_vv_i16##M2(x, w, (size_t)n);                       \
    }                                                                          \
    CRT_RVV(B, most, L)(B x, B w, int32_t n)                                   \
    {                                                                          \
        return __riscv_vmax_vv_i8##M1(x, w, (size_t)n);                        \
    }

/* Entries of a table: of 256 bytes, that of -128 first; of words. One number
 * of n lanes: their sum, and the greatest. */
#define CRT_RVV_TABLES(L, M1, M2, M4, B, H, W)                                 \
    CRT_RVV(B, table, L)(const int8_t *table, B b, int32_t n)                  \
    {                                                                          \
        b = __riscv_vxor_vx_i8##M1(b, INT8_MIN, (size_t)n);                    \
        return __riscv_vluxei8_v_i8##M1(                                       \
            table, __riscv_vreinterpret_v_i8##M1##_u8##M1(b), (size_t)n);      \
    }                                                                          \
    CRT_RVV(W, entries, L)(const int32_t *table, H h, int32_t n)               \
    {                                                                          \
        h = __riscv_vsll_vx_i16##M2(h, 2u, (size_t)n);                         \
        return __riscv_vluxei16_v_i32##M4(                                     \
            table, __riscv_vreinterpret_v_i16##M2##_u16##M2(h), (size_t)n);    \
    }                                                                          \
    CRT_RVV(int32_t, total, L)(W v, int32_t n)                                 \
    {                                                                          \
        vint32m1_t made = __riscv_vredsum_vs_i32##M4##_i32m1(                  \
            v, __riscv_vmv_s_x_i32m1(0, 1u), (size_t)n);                       \
        return __riscv_vmv_x_s_i32m1_i32(made);                                \
    }                                                                          \
    CRT_RVV(int32_t, greatest, L)(B b, int32_t n)                              \
    {                                                                          \
        vint8m1_t made = __riscv_vredmax_vs_i8##M1##_i8m1(                     \
            b, __riscv_vmv_s_x_i8m1(INT8_MIN, 1u), (size_t)n);                 \
        return __riscv_vmv_x_s_i8m1_i8(made);                                  \
    }

/* Rules of rounding: u is minus the shift to the right. */
#define CRT_RVV_RULES(L, M4, W, BITS)                                          \
    CRT_INLINE W crt_rounded_v##L(W v, W u, size_t k)                          \
    {                                                                          \
        W places = __riscv_vrsub_vx_i32##M4(u, 0, k);                          \
        return __riscv_vssra_vv_i32##M4(                                       \
            v, __riscv_vreinterpret_v_i32##M4##_u32##M4(places), 0u, k);       \
    }                                                                          \
    CRT_RVV(W, lift, L)(W v, W m, int32_t n)                                   \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        W moved = __riscv_vsll_vv_i32##M4(                                     \
            v, __riscv_vreinterpret_v_i32##M4##_u32##M4(m), k);                \
        W back = __riscv_vsra_vv_i32##M4(                                      \
            moved, __riscv_vreinterpret_v_i32##M4##_u32##M4(m), k);            \
        W end = __riscv_vxor_vx_i32##M4(__riscv_vsra_vx_i32##M4(v, 31u, k),    \
                                        INT32_MAX, k);                         \
        return __riscv_vmerge_vvm_i32##M4(                                     \
            moved, end, __riscv_vmsne_vv_i32##M4##_b##BITS(back, v, k), k);    \
    }                                                                          \
    CRT_RVV(W, twice, L)(W v, W m, W u, int32_t n)                             \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        v = __riscv_vsmul_vv_i32##M4(v, m, 0u, k);                             \
        W sign = __riscv_vand_vv_i32##M4(v, u, k);                             \
        sign = __riscv_vsra_vx_i32##M4(sign, 31u, k);                          \
        return crt_rounded_v##L(__riscv_vadd_vv_i32##M4(v, sign, k), u, k);    \
    }                                                                          \
    CRT_RVV(W, once, L)(W v, W m, W u, int32_t n)                              \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        return crt_rounded_v##L(__riscv_vmulh_vv_i32##M4(v, m, k), u, k);      \
    }                                                                          \
    CRT_RVV(W, away, L)(W v, W m, W u, int32_t n)                              \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        W high = __riscv_vmulh_vv_i32##M4(v, m, k);                            \
        W low = __riscv_vmul_vv_i32##M4(v, m, k);                              \
        W some = __riscv_vor_vv_i32##M4(                                       \
            low, __riscv_vrsub_vx_i32##M4(low, 0, k), k);                      \
        some =                                                                 \
            __riscv_vnot_v_i32##M4(__riscv_vsra_vx_i32##M4(some, 31u, k), k);  \
        W less = __riscv_vand_vv_i32##M4(                                      \
            __riscv_vsra_vx_i32##M4(high, 31u, k), some, k);                   \
        return crt_rounded_v##L(__riscv_vadd_vv_i32##M4(high, less, k), u, k); \
    }                                                                          \
    CRT_RVV(W, up_one, L)(W v, int32_t x, int32_t n)                           \
    {                                                                          \
        return __riscv_vsmul_vx_i32##M4(v, x, 0u, (size_t)n);                  \
    }                                                                          \
    CRT_RVV(W, twice_one, L)(W v, int32_t x, int32_t low, int32_t n)           \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        v = crt_up_one_v##L(v, x, n);                                          \
        v = __riscv_vadd_vv_i32##M4(v, __riscv_vsra_vx_i32##M4(v, 31u, k), k); \
        return __riscv_vssra_vx_i32##M4(v, (size_t)(0 - low), 0u, k);          \
    }                                                                          \
    CRT_RVV(W, once_one, L)(W v, int32_t x, int32_t low, int32_t n)            \
    {                                                                          \
        v = __riscv_vmulh_vx_i32##M4(v, x, (size_t)n);                         \
        return __riscv_vssra_vx_i32##M4(v, (size_t)(0 - low), 0u, (size_t)n);  \
    }                                                                          \
    CRT_RVV(W, precise, L)(W v, W m, W u, W w, int32_t n)                      \
    {                                                                          \
        size_t k = (size_t)n;                                                  \
        W sign = __riscv_vsra_vx_i32##M4(v, 31u, k);                           \
        W size =                                                               \
            __riscv_vmax_vv_i32##M4(v, __riscv_vrsub_vx_i32##M4(v, 0, k), k);  \
        W high = __riscv_vmulh_vv_i32##M4(size, m, k);                         \
        W low = __riscv_vmul_vv_i32##M4(size, m, k);                           \
        W below = __riscv_vreinterpret_v_u32##M4##_i32##M4(                    \
            __riscv_vmulhu_vv_u32##M4(                                         \
                __riscv_vreinterpret_v_i32##M4##_u32##M4(size),                \
                __riscv_vreinterpret_v_i32##M4##_u32##M4(w), k));              \
        high = __riscv_vadc_vxm_i32##M4(                                       \
            high, 0, __riscv_vmadc_vv_i32##M4##_b##BITS(low, below, k), k);    \
        high = crt_rounded_v##L(high, u, k);                                   \
        high = __riscv_vxor_vv_i32##M4(high, sign, k);                         \
        return __riscv_vsub_vv_i32##M4(high, sign, k);                         \
    }

CRT_C_BODIES_END

#endif
