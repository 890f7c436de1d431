/* crt/inline.h: what compilers are told about functions, loops and small
 * copies. Knows no model. Needs only the compiler and string.h. */
#ifndef CRT_INLINE_H
#define CRT_INLINE_H

#include <string.h>

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
#define CRT_COPY __builtin_memcpy
#else
#define CRT_COPY memcpy
#endif

#endif
