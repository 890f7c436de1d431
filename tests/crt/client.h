/* client.h: calls to the server of line.h, one after the other, as a host makes
 * them that loses nothing. */
#ifndef CLIENT_H
#define CLIENT_H

#include "expect.h"
#include "line.h"

static uint32_t session;
static uint32_t sequence;
static struct crt_rpc_config config;

static void start(const struct crt_model *m)
{
    config = line_config(m);
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
    session = line_hello(1);
    sequence = 0;
}

static int working; /* frames of it before the last reply */

/* The reply that comes last, after what tells that the call is done. */
static struct crt_frame reply(void)
{
    struct crt_frame frame;

    for (working = 0;; working++) {
        frame = line_next();
        if (frame.kind != CRT_FRAME_WORKING)
            break;
    }
    EXPECT(frame.kind == CRT_FRAME_REPLY && frame.session == session);
    EXPECT(frame.sequence == sequence && frame.bytes >= 4);
    return frame;
}

static uint8_t answered[LINE_MOST];

/* The next call, its status; what it gave is in `answered`. */
static int32_t call_with(const uint32_t *words, uint32_t count,
                         const void *data, uint32_t bytes)
{
    uint8_t all[LINE_MOST];
    uint32_t size = line_data(all, words, count, data, bytes);
    struct crt_frame frame;

    line_clear();
    line_frame(CRT_FRAME_CALL, session, ++sequence, all, size);
    EXPECT(crt_rpc_poll(&server) == 1);
    frame = reply();
    memcpy(answered, frame.data + 4, frame.bytes - 4);
    return (int32_t)crt_get32(frame.data);
}

static int32_t call(uint32_t number, uint32_t a, uint32_t b, uint32_t c,
                    uint32_t d)
{
    static const uint8_t counts[CRT_RPC_CALL_COUNT] = {
        0, 0, 1, 1, 2, 3, 2, 0, 4, 4, 2, 2, 1, 1, 2, 4, 1, 4, 3};
    uint32_t words[5];

    words[0] = number;
    words[1] = a;
    words[2] = b;
    words[3] = c;
    words[4] = d;
    return call_with(words, 1u + counts[number], NULL, 0);
}

static inline int32_t set(uint32_t graph, uint32_t input, uint32_t at,
                          uint32_t whole, const void *data, uint32_t bytes)
{
    uint32_t words[5] = {CRT_RPC_SET};

    words[1] = graph;
    words[2] = input;
    words[3] = at;
    words[4] = whole;
    return call_with(words, 5, data, bytes);
}

static inline int32_t write(uint32_t buffer, uint32_t at, const void *data,
                            uint32_t bytes)
{
    uint32_t words[3] = {CRT_RPC_WRITE};

    words[1] = buffer;
    words[2] = at;
    return call_with(words, 3, data, bytes);
}

#endif
