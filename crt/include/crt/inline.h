/* crt/inline.h: what compilers are told about functions, loops, small copies
 * and the order of loads. Knows no model. Needs only the compiler and
 * config.h, and string.h where that is not a GNU one. */
#ifndef CRT_INLINE_H
#define CRT_INLINE_H

#include <stdint.h>

#include "crt/config.h"

/* Around bodies of functions in headers, which are C for C++, too: its users'
 * compilers are not to speak of casts and of NULL there. */
#if defined(__cplusplus) && defined(__clang__)
#define CRT_C_BODIES                                                           \
    _Pragma("clang diagnostic push")                                           \
        _Pragma("clang diagnostic ignored \"-Wold-style-cast\"") _Pragma(      \
            "clang diagnostic ignored \"-Wzero-as-null-pointer-constant\"")
#define CRT_C_BODIES_END _Pragma("clang diagnostic pop")
#elif defined(__cplusplus) && defined(__GNUC__)
#define CRT_C_BODIES                                                           \
    _Pragma("GCC diagnostic push")                                             \
        _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")                 \
            _Pragma("GCC diagnostic ignored \"-Wuseless-cast\"") _Pragma(      \
                "GCC diagnostic ignored \"-Wzero-as-null-pointer-constant\"")
#define CRT_C_BODIES_END _Pragma("GCC diagnostic pop")
#else
#define CRT_C_BODIES
#define CRT_C_BODIES_END
#endif

/* Functions that must vanish into their caller, also at -Os. */
#ifndef CRT_INLINE
#if defined(__GNUC__)
#define CRT_INLINE static inline __attribute__((always_inline, unused))
#else
#define CRT_INLINE static inline
#endif
#endif

/* A piece of a kernel that must keep registers of its own. */
#if defined(__GNUC__)
#define CRT_PART static __attribute__((noinline))
#else
#define CRT_PART static
#endif

/* Before a loop that is unrolled as far as the registers go. */
#if defined(__clang__)
#define CRT_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define CRT_ROLLED
#endif

/* A copy of a few bytes that must become a load, also without a C library. */
#if defined(__GNUC__)
#define CRT_COPY (void)__builtin_memcpy
#else
#include <string.h>
#define CRT_COPY (void)memcpy
#endif

/* Inline assembly as GNU compilers have it. */
#if defined(__GNUC__) && !defined(CRT_NO_ASM)
#define CRT_ASM 1
#endif

/* Held within int8 or int16, in the instruction that shifts to the right
 * before; clang and LLVM make it of the least and the greatest by themselves.
 */
#if defined(__ARM_FEATURE_SAT) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 10
#define CRT_SSAT8(x)  (int32_t)__builtin_arm_ssat(x, 8)
#define CRT_SSAT16(x) (int32_t)__builtin_arm_ssat(x, 16)
#endif
#endif

/* x; nothing after it is read before it. */
CRT_INLINE int32_t crt_in_order(int32_t x)
{
#if defined(CRT_ASM) && (defined(__riscv) || !defined(__clang__))
    __asm__ volatile("" : "+r"(x) : : "memory");
#endif
    return x;
}

/* The same of a float, where gcc would load more than ARM has registers for. */
CRT_INLINE float crt_float_in_order(float x)
{
#if defined(CRT_ASM) && !defined(__clang__) && defined(__ARM_FP)
    __asm__ volatile("" : "+t"(x) : : "memory");
#endif
    return x;
}

/* Of a loop from 0 to `count`, `step` a turn. */
CRT_INLINE int32_t crt_turns(int32_t count, int32_t step)
{
    return count > 0 ? (count + step - 1) / step : 0;
}

#endif
