/* crt/rpc.h: a server that lets pybuild.rpc drive a model over a stream of
 * bytes: docs/rpc-protocol.md. Allocates nothing but in the memory that it is
 * given; knows no board and no operator. Left out by CRT_NO_RPC. */
#ifndef CRT_RPC_H
#define CRT_RPC_H

#include "crt/frame.h"
#include "crt/port.h"
#include "crt/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the protocol: without a key, and with one. */
#define CRT_RPC_VERSION       1
#define CRT_RPC_VERSION_KEYED 2

/* Bytes of crt_rpc_config.room for frames with so many bytes of data, without a
 * key and with one. */
#define CRT_RPC_ROOM(bytes)       (2u * ((bytes) + CRT_FRAME_EXTRA))
#define CRT_RPC_KEYED_ROOM(bytes) CRT_RPC_ROOM((bytes) + CRT_RPC_TAG_BYTES)
#define CRT_RPC_ROOM_LEAST        CRT_RPC_ROOM(128u)

/* Bytes of a key; of what a start is told by; of what the host draws for a
 * session; of the tag behind the data of a frame. */
#define CRT_RPC_KEY_BYTES   32u
#define CRT_RPC_START_BYTES 16u
#define CRT_RPC_NONCE_BYTES 16u
#define CRT_RPC_TAG_BYTES   16u

/* HMAC-SHA-256 of `head` and, behind it, `data`: crt_hmac_sha256 of crt/hmac.h,
 * or what hardware has. */
typedef void crt_rpc_hmac(const uint8_t *key, const uint8_t *head,
                          uint32_t head_bytes, const uint8_t *data,
                          uint32_t bytes, uint8_t *result);

/* A key that the host has, too: only hosts that know it are served, and
 * recorded calls are not executed again. Data is not encrypted. Set the first
 * three, zero all else before the first crt_rpc_init of a start, then do not
 * change it.
 *
 * Owner   the caller, of it and of what it points to */
struct crt_rpc_key {
    const uint8_t *secret; /* CRT_RPC_KEY_BYTES; may be in flash */
    /* CRT_RPC_START_BYTES that no start of any board with this key had before:
     * random ones, or its number and a count in flash. If they repeat,
     * recorded calls of that time can be executed again */
    const uint8_t *start;
    crt_rpc_hmac *hmac;
    uint8_t asked[CRT_RPC_NONCE_BYTES]; /* by the last hello */
    uint8_t offered[CRT_RPC_KEY_BYTES]; /* key of the session that is offered */
    uint8_t session[CRT_RPC_KEY_BYTES]; /* of the one that is */
    uint64_t offers;                    /* since the start */
};

/* Alignment of crt_rpc_config.memory and of all that is put there. */
#define CRT_RPC_ALIGN 16u

/* A model and its line. Const, or left as it is once crt_rpc_init was called.
 *
 * Owner   the caller, of all that it points to; nothing else may use memory
 *         and room */
struct crt_rpc_config {
    const struct crt_model *model; /* whose devices are the CPU alone */
    const char *content;       /* its name and content, as pybuild made them */
    const char *board;         /* what the other side calls this one */
    crt_byte_put *put;         /* sends a byte; waits while the line is busy */
    int (*get)(void *context); /* the byte that came next, -1: none */
    uint32_t (*ticks)(void *context); /* a counter, wraps at 2^32; NULL: none */
    void *context;                    /* handed to all three */
    uint8_t *memory;       /* instances, weights; aligned to CRT_RPC_ALIGN */
    uint32_t memory_bytes; /* those of a model are in its report */
    uint8_t *room;         /* two frames */
    uint32_t room_bytes;   /* CRT_RPC_ROOM_LEAST to CRT_RPC_ROOM(65535); with a
                            * key from CRT_RPC_KEYED_ROOM(128u) on */
    uint32_t line_bytes; /* bytes that wait while one frame is dealt with: of a
                          * FIFO, or what an interrupt fills; 0: none do */
    uint32_t hz;         /* of ticks; 0: not known */
    struct crt_rpc_key *key; /* NULL: who reaches the line may use the board */
};

/* A piece of crt_rpc_config.memory. */
struct crt_rpc_object {
    uint32_t at;
    uint32_t bytes;
    uint32_t kind; /* enum crt_rpc_kind */
};

enum crt_rpc_kind {
    CRT_RPC_FREE = 0,
    CRT_RPC_BUFFER = 1,
    CRT_RPC_IMAGE = 2,
    CRT_RPC_GRAPH = 3
};

/* A server. Zero it or leave it static; read nothing.
 *
 * Owner   the caller */
struct crt_rpc {
    const struct crt_rpc_config *config;
    struct crt_frame_input in;
    uint8_t *reply;       /* the last one, behind the room of `in` */
    uint32_t reply_bytes; /* of it */
    uint32_t most;        /* bytes of data of a frame */
    uint32_t session;     /* 0: none */
    uint32_t sequence;    /* of the last call that was done */
    uint32_t offered;     /* the session of the last welcome; 0: none */
    uint32_t nonce;       /* of the hello that it answered */
    uint32_t welcomes;
    uint32_t logs;
    struct crt_rpc_object objects[CRT_RPC_OBJECTS];
};

/* For every function of this header:
 *
 * Thread  one at a time for one server
 * Errors  CRT_ERR_NULL, also for a server that was never initialised */

/* Begins to serve; there is no session yet.
 *
 * Owner   config must outlive the server
 * Errors  CRT_ERR_ALIGN: of memory; CRT_ERR_SIZE: of room; CRT_ERR_DEVICE */
int crt_rpc_init(struct crt_rpc *r, const struct crt_rpc_config *config);

/* Takes the bytes that have come, and does the calls that are whole: call it
 * again and again.
 *
 * Errors  the number of frames that were dealt with */
int crt_rpc_poll(struct crt_rpc *r);

/* Sends text for people, between two calls of crt_rpc_poll; cut to what fits
 * in a frame. It is not sent again where it is lost, but its loss is seen. */
int crt_rpc_log(struct crt_rpc *r, const char *text);

/* The line of crt/port.h, for firmware that has it. */
static inline void crt_rpc_port_put(void *context, uint8_t byte)
{
    (void)context;
    crt_port_put(byte);
}

static inline int crt_rpc_port_get(void *context)
{
    (void)context;
    return crt_port_get();
}

static inline uint32_t crt_rpc_port_ticks(void *context)
{
    (void)context;
    return crt_port_ticks();
}

#ifdef __cplusplus
}
#endif

#endif
