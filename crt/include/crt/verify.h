/* crt/verify.h: checks that flash still holds the weights and tables of a model
 * as they were built (`crt build --verify`). Knows no operator. */
#ifndef CRT_VERIFY_H
#define CRT_VERIFY_H

#include "crt/error.h"
#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One array of a model, and how it is known to be right. */
struct crt_sum {
    const void *data;
    const void *copy; /* of a table of addresses, which only the linker knows:
                       * the same table again. NULL: crc is of the data */
    uint32_t bytes;
    uint32_t crc; /* crt_crc32 of the data */
};

/* All arrays of a model. */
struct crt_sums {
    const struct crt_sum *sums;
    const struct crt_sum *again; /* the same, elsewhere: no damaged address is
                                  * followed */
    uint32_t count;
};

/* The progress of a pass over all arrays. Zero it or leave it static; zero it
 * again to start over. Read `passes`; and after an error `next`, which is then
 * the number of the damaged array, from 1.
 *
 * Owner   the caller */
struct crt_verify {
    uint32_t next;   /* the array that is checked next, from 0 */
    uint32_t at;     /* its bytes that are checked already */
    uint32_t crc;    /* the checksum of these */
    uint32_t passes; /* how often the end of all arrays was reached */
};

/* A checksum as a core reads it whose bytes come in this order. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define CRT_BY_ORDER(little, big) (big)
#endif
#endif
#ifndef CRT_BY_ORDER
#define CRT_BY_ORDER(little, big) (little)
#endif

/* Checks the next bytes of a model's arrays, at most to the end of the pass,
 * against checksums from the build. After an error the next call continues
 * behind the damaged array.
 *
 * Shapes  both[2], two equal ones; bytes: how many this call may look at
 * Owner   state is the caller's; NULL: all arrays are looked at, in one call
 * Thread  re-entrant; each state belongs to one thread
 * Errors  CRT_ERR_NULL; CRT_ERR_CHECKSUM: an array, or what is said of it, is
 *         not as it was built */
int crt_model_verify(const struct crt_sums *both, struct crt_verify *state,
                     uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif
