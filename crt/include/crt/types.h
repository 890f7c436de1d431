/* crt/types.h: the types that all of crt speaks.
 * Knows no model and no operator. */
#ifndef CRT_TYPES_H
#define CRT_TYPES_H

#include "crt/config.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, as crt_tensor.dtype holds them. Values are for ever. */
enum crt_dtype {
    CRT_BOOL = 1, /* one byte, 0 or 1 */
    CRT_INT8 = 2,
    CRT_UINT8 = 3,
    CRT_INT16 = 4,
    CRT_INT32 = 5,
    CRT_INT64 = 6,
    CRT_FLOAT32 = 7, /* IEEE 754 binary32 */
    CRT_UINT16 = 8,
    CRT_UINT32 = 9,
    CRT_UINT64 = 10,
    CRT_FLOAT64 = 11, /* IEEE 754 binary64, where double is that */
    CRT_FLOAT16 = 12, /* IEEE 754 binary16, as its bits */
    CRT_BFLOAT16 = 13 /* the upper half of a binary32, as its bits */
};

/* A piece of memory that the caller lends to a model.
 *
 * Units   bytes
 * Owner   the caller, for as long as the model is used */
struct crt_region {
    void *ptr;
    uint32_t bytes;
};

/* Before the type of a variable: at a multiple of n bytes, a power of 2. For
 * example  static CRT_ALIGNED(16) uint8_t arena[NAME_ARENA_BYTES]; */
#if defined(__GNUC__) || defined(__clang__)
#define CRT_ALIGNED(n) __attribute__((aligned(n)))
#elif defined(_MSC_VER)
#define CRT_ALIGNED(n) __declspec(align(n))
#else
#define CRT_ALIGNED(n) _Alignas(n)
#endif

/* sizeof(array), where it has as many bytes; what has fewer, as a pointer has,
 * does not compile: an array of -1 elements. */
#define CRT_ROOM(array, bytes)                                                 \
    (sizeof(array) * sizeof(char[sizeof(array) + 1u > (bytes) ? 1 : -1]))

#ifdef __cplusplus
}
#endif

#endif
