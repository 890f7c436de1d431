/* crt/port.h: the functions of the platform that crt uses.
 * Knows nothing of models. */
#ifndef CRT_PORT_H
#define CRT_PORT_H

#include "crt/inline.h"
#include "crt/types.h"

#ifndef CRT_NO_STRING_H
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

CRT_C_BODIES

/* The same pointer for a table that has what is written beside what is only
 * read. */
static inline void *crt_unconst(const void *ptr)
{
    /* MISRA 11.6: a number between, for a compiler that warns of const */
    return (void *)(uintptr_t)ptr;
}

/* Copies `bytes` bytes; the two areas do not overlap. */
static inline void crt_copy(void *to, const void *from, size_t bytes)
{
#ifdef CRT_NO_STRING_H
    uint8_t *out = (uint8_t *)to;
    const uint8_t *in = (const uint8_t *)from;

    while (bytes-- > 0) {
        *out++ = *in++;
    }
#else
    (void)memcpy(to, from, bytes);
#endif
}

/* A flag that other threads may look at. Where the compiler has no atomic words
 * (Cortex-M0, RISC-V without A), it is a plain one: threads there take their
 * own lock. */
#if defined(__GCC_ATOMIC_INT_LOCK_FREE) && __GCC_ATOMIC_INT_LOCK_FREE == 2
#define CRT_HAS_ATOMIC_FLAG 1
#endif

/* Raises a flag; returns whether it was up already. */
static inline int crt_raise_flag(uint32_t *flag)
{
#ifdef CRT_HAS_ATOMIC_FLAG
    return __atomic_exchange_n(flag, 1u, __ATOMIC_ACQUIRE) != 0;
#else
    uint32_t was = *flag;

    *flag = 1;
    return was != 0u;
#endif
}

static inline void crt_lower_flag(uint32_t *flag)
{
#ifdef CRT_HAS_ATOMIC_FLAG
    __atomic_store_n(flag, 0u, __ATOMIC_RELEASE);
#else
    *flag = 0;
#endif
}

CRT_C_BODIES_END

/* The functions of a board: boards/NAME/board.c and boards/common define them
 * for simulators. The graph executor calls none of them.
 *
 * Thread  one at a time */

/* Prepares the console; start-up code calls it before main. */
void crt_port_init(void);

/* Sends a byte; waits while the line is busy. */
void crt_port_put(uint8_t byte);

/* The next byte that was received, or -1 if there is none. */
int crt_port_get(void);

/* A free-running counter at the processor's clock; turns around at 2^32. */
uint32_t crt_port_ticks(void);

/* Ends the program; a simulator gives the code back to its caller. */
void crt_port_exit(int code);

#ifdef __cplusplus
}
#endif

#endif
