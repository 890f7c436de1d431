/* line.h: a line in memory with a server on one end, and the other end by hand:
 * frames as the host sends and reads them. */
#ifndef LINE_H
#define LINE_H

#include "crt/calls.h"
#include "crt/crc.h"

#include <string.h>

enum { LINE_BYTES = 8192, LINE_MOST = 128, LINE_MEMORY = 4096, LINE_WORDS = 8 };

static struct {
    uint8_t to[LINE_BYTES]; /* the server */
    uint8_t from[LINE_BYTES];
    uint32_t given;
    uint32_t taken;
    uint32_t sent;
    uint32_t read;
    uint32_t now;
} line;

static uint8_t line_memory[LINE_MEMORY] __attribute__((aligned(16)));
static uint8_t line_room[CRT_RPC_ROOM(LINE_MOST)];
static struct crt_rpc server;

static void line_put(void *context, uint8_t byte)
{
    (void)context;
    if (line.sent < LINE_BYTES)
        line.from[line.sent++] = byte;
}

static int line_get(void *context)
{
    (void)context;
    return line.taken < line.given ? line.to[line.taken++] : -1;
}

static uint32_t line_ticks(void *context)
{
    (void)context;
    return line.now += 3;
}

static void line_give(void *context, uint8_t byte)
{
    (void)context;
    if (line.given < LINE_BYTES)
        line.to[line.given++] = byte;
}

static struct crt_rpc_config line_config(const struct crt_model *model)
{
    struct crt_rpc_config c;

    memset(&c, 0, sizeof c);
    c.model = model;
    c.content = "two-0123";
    c.board = "here";
    c.put = line_put;
    c.get = line_get;
    c.ticks = line_ticks;
    c.memory = line_memory;
    c.memory_bytes = sizeof line_memory;
    c.room = line_room;
    c.room_bytes = sizeof line_room;
    c.line_bytes = 77;
    c.hz = 1000;
    return c;
}

static void line_clear(void)
{
    line.given = 0;
    line.taken = 0;
    line.sent = 0;
    line.read = 0;
}

static struct crt_frame line_made(uint8_t kind, uint32_t session,
                                  uint32_t sequence, const uint8_t *data,
                                  uint32_t bytes)
{
    struct crt_frame frame;

    frame.kind = kind;
    frame.session = session;
    frame.sequence = sequence;
    frame.data = data;
    frame.bytes = bytes;
    return frame;
}

static void line_frame(uint8_t kind, uint32_t session, uint32_t sequence,
                       const uint8_t *data, uint32_t bytes)
{
    struct crt_frame frame = line_made(kind, session, sequence, data, bytes);

    crt_frame_send(&frame, line_give, NULL);
}

/* The next frame that the server sent; kind 0: there is none. */
static struct crt_frame line_next(void)
{
    static uint8_t room[LINE_MOST + CRT_RPC_TAG_BYTES + CRT_FRAME_EXTRA];
    static struct crt_frame_input in;
    struct crt_frame frame;

    memset(&frame, 0, sizeof frame);
    if (line.read == 0)
        crt_frame_begin(&in, room, sizeof room);
    while (line.read < line.sent) {
        if (crt_frame_take(&in, line.from[line.read++], &frame))
            return frame;
    }
    return frame;
}

/* Says hello; the session that is offered. */
static inline uint32_t line_hello(uint32_t nonce)
{
    line_clear();
    line_frame(CRT_FRAME_HELLO, nonce, 0, NULL, 0);
    crt_rpc_poll(&server);
    return line_next().session;
}

/* The data of a call; `count` words, the number of the call first. */
static inline uint32_t line_data(uint8_t *to, const uint32_t *words,
                                 uint32_t count, const void *data,
                                 uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < count; i++)
        crt_put32(to + 4 * i, words[i]);
    if (bytes > 0)
        memcpy(to + 4 * count, data, bytes);
    return 4 * count + bytes;
}

#endif
