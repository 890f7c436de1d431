/* host.c: the server of crt/rpc.h on this machine, for tests: bytes in, bytes
 * out, and resets. Knows no model: it is given one. */
#include "crt/rpc.h"

#include <string.h>

enum { MEMORY = 1 << 20, QUEUE = 1 << 18, DATA = 512 };

static struct {
    uint8_t bytes[QUEUE];
    uint32_t count;
    uint32_t taken;
} in, out;

static uint8_t memory[MEMORY] __attribute__((aligned(16)));
static uint8_t room[CRT_RPC_ROOM(DATA)];
static struct crt_rpc_config config;
static struct crt_rpc server;
static uint32_t now;

static void put(void *context, uint8_t byte)
{
    (void)context;
    if (out.count < QUEUE)
        out.bytes[out.count++] = byte;
}

static int get(void *context)
{
    (void)context;
    return in.taken < in.count ? in.bytes[in.taken++] : -1;
}

static uint32_t ticks(void *context)
{
    (void)context;
    return now += 1000;
}

/* Starts it, or resets it: memory and all that was on the way are lost. */
int host_start(const struct crt_model *model, const char *content,
               const char *board, uint32_t line_bytes)
{
    memset(memory, 0xA5, sizeof memory);
    in.count = in.taken = 0;
    config.model = model;
    config.content = content;
    config.board = board;
    config.put = put;
    config.get = get;
    config.ticks = ticks;
    config.memory = memory;
    config.memory_bytes = sizeof memory;
    config.room = room;
    config.room_bytes = sizeof room;
    config.line_bytes = line_bytes;
    config.hz = 1000000;
    return crt_rpc_init(&server, &config);
}

void host_feed(const uint8_t *bytes, uint32_t count)
{
    if (in.taken == in.count)
        in.count = in.taken = 0;
    if (count > QUEUE - in.count)
        count = QUEUE - in.count;
    memcpy(in.bytes + in.count, bytes, count);
    in.count += count;
    crt_rpc_poll(&server);
}

/* What it has sent; at most QUEUE bytes. */
uint32_t host_take(uint8_t *bytes)
{
    const uint32_t count = out.count;

    memcpy(bytes, out.bytes, count);
    out.count = 0;
    return count;
}

int host_log(const char *text)
{
    return crt_rpc_log(&server, text);
}
