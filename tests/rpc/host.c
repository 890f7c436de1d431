/* host.c: the server of crt/rpc.h on this machine, for tests: bytes in, bytes
 * out, and resets. Knows no model: it is given one. */
#include "crt/hmac.h"
#include "crt/rpc.h"

#include <string.h>

enum { MEMORY = 1 << 20, QUEUE = 1 << 18, DATA = 512 };

static struct {
    uint8_t bytes[QUEUE];
    uint32_t count;
    uint32_t taken;
} in, out;

static uint8_t memory[MEMORY] __attribute__((aligned(16)));
static uint8_t room[CRT_RPC_KEYED_ROOM(DATA)];
static struct crt_rpc_config config;
static struct crt_rpc_key key;
static uint8_t secret[CRT_RPC_KEY_BYTES], begun[CRT_RPC_START_BYTES];
static int has_key;
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

/* From the next start on: what the other side must know, and what is said of
 * that start. */
void host_key(const uint8_t *own, const uint8_t *start)
{
    has_key = 1;
    memcpy(secret, own, sizeof secret);
    memcpy(begun, start, sizeof begun);
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
    config.room_bytes = has_key ? sizeof room : CRT_RPC_ROOM(DATA);
    memset(&key, 0, sizeof key);
    key.secret = secret;
    key.start = begun;
    key.hmac = crt_hmac_sha256;
    config.key = has_key ? &key : NULL;
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

/* Objects that there are. */
int host_objects(void)
{
    int count = 0;
    int i;

    for (i = 0; i < CRT_RPC_OBJECTS; i++)
        count += server.objects[i].kind != CRT_RPC_FREE;
    return count;
}
