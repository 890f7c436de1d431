/* crt/calls.h: the calls of docs/rpc-protocol.md, between rpc.c, which knows
 * frames and sessions, and calls.c, which knows graphs; for crt's own sources.
 */
#ifndef CRT_CALLS_H
#define CRT_CALLS_H

#include "crt/inline.h"
#include "crt/objects.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of calls, for ever. Arguments are words of 32 bits; what follows
 * them is data. G: a graph, B: a buffer, I: an image. */
enum crt_rpc_call {
    CRT_RPC_ECHO = 0,     /* , data -> the data */
    CRT_RPC_TICKS = 1,    /* -> ticks */
    CRT_RPC_ALLOCATE = 2, /* bytes -> B */
    CRT_RPC_RELEASE = 3,  /* B, I or G */
    CRT_RPC_WRITE = 4,    /* B, at, data */
    CRT_RPC_READ = 5,     /* B, at, bytes -> data */
    CRT_RPC_OPEN = 6,     /* B, bytes: becomes I */
    CRT_RPC_CREATE = 7,   /* -> G */
    CRT_RPC_SET = 8,      /* G, input, at, whole, data */
    CRT_RPC_GET = 9,      /* G, input or output, at, bytes -> data */
    CRT_RPC_RUN = 10,     /* G, count -> failed step, missing, ticks (64) */
    CRT_RPC_STAGE = 11,   /* G, stage -> failed step, missing, ticks (64) */
    CRT_RPC_SETUP = 12,   /* G -> failed step, missing */
    CRT_RPC_RESET = 13,   /* G */
    CRT_RPC_LOAD = 14,    /* G, I */
    CRT_RPC_SHARE = 15,   /* G, parameter, other G, its parameter */
    CRT_RPC_UNBIND = 16,  /* G: all parameters */
    CRT_RPC_BIND = 17,    /* G, input, other G, its input or output */
    CRT_RPC_WATCH = 18,   /* G, B or CRT_RPC_NONE, steps | output << 16 */
    CRT_RPC_CALL_COUNT = 19
};

/* Does a call; r->reply_bytes is then that of its answer after the status.
 *
 * Shapes  words[...] as above; data[bytes], of which nothing is kept
 * Errors  what the other side gets as the status: the number of an object, 0,
 *         or a code of error.h */
int32_t crt_rpc_do(struct crt_rpc *r, uint32_t call, const uint32_t *words,
                   const uint8_t *data, uint32_t bytes);

/* Tells the other side that the call will take its time. */
void crt_rpc_working(struct crt_rpc *r);

CRT_C_BODIES

/* Where the data of the answer begins, and how much fits. */
static inline uint8_t *crt_rpc_answer(const struct crt_rpc *r)
{
    return r->reply + 4;
}

static inline uint32_t crt_rpc_answer_most(const struct crt_rpc *r)
{
    return r->most - 4u;
}

static inline uint32_t crt_get32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static inline void crt_put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

CRT_C_BODIES_END

#ifdef __cplusplus
}
#endif

#endif
