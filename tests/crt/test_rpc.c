/* The server of crt/rpc.h: sessions on a line that loses frames, memory, bytes.
 * Prints each failed line; exit code 1 if there was one. */
#include "crt/rpc.h"

#ifndef CRT_NO_RPC

#include "client.h"

#include "model.h"

/* @req rpc.h:CRT_ERR_NULL */
static void test_init(void)
{
    struct crt_rpc_config bad;
    struct crt_model with_device = model;
    struct crt_accelerator accelerator;
    struct crt_rpc r;
    int i;

    config = line_config(&model);
    memset(&accelerator, 0, sizeof accelerator);
    memset(&r, 0, sizeof r);
    EXPECT(crt_rpc_init(NULL, &config) == CRT_ERR_NULL);
    EXPECT(crt_rpc_init(&r, NULL) == CRT_ERR_NULL);
    EXPECT(crt_rpc_poll(&r) == CRT_ERR_NULL);
    EXPECT(crt_rpc_poll(NULL) == CRT_ERR_NULL);
    EXPECT(crt_rpc_log(&r, "a") == CRT_ERR_NULL);
    EXPECT(crt_rpc_log(NULL, "a") == CRT_ERR_NULL);
    for (i = 0; i < 7; i++) {
        bad = config;
        bad.model = i == 0 ? NULL : bad.model;
        bad.content = i == 1 ? NULL : bad.content;
        bad.board = i == 2 ? NULL : bad.board;
        bad.put = i == 3 ? NULL : bad.put;
        bad.get = i == 4 ? NULL : bad.get;
        bad.memory = i == 5 ? NULL : bad.memory;
        bad.room = i == 6 ? NULL : bad.room;
        EXPECT(crt_rpc_init(&r, &bad) == CRT_ERR_NULL);
    }
    bad = config;
    bad.memory++;
    EXPECT(crt_rpc_init(&r, &bad) == CRT_ERR_ALIGN);
    bad = config;
    bad.room_bytes = CRT_RPC_ROOM_LEAST - 1;
    EXPECT(crt_rpc_init(&r, &bad) == CRT_ERR_SIZE);
    bad.room_bytes = CRT_RPC_ROOM(65536u);
    EXPECT(crt_rpc_init(&r, &bad) == CRT_ERR_SIZE);
    bad = config;
    bad.model = &with_device;
    with_device.region_align = 32;
    EXPECT(crt_rpc_init(&r, &bad) == CRT_ERR_ALIGN);
    with_device.accelerator = &accelerator;
    EXPECT(crt_rpc_init(&r, &bad) == CRT_ERR_DEVICE);
    EXPECT(crt_rpc_init(&r, &config) == CRT_OK);
    EXPECT(crt_rpc_log(&r, NULL) == CRT_ERR_NULL);
}

/* @req crt_rpc_poll:Errors */
static void test_welcome(void)
{
    static char longest[200];
    struct crt_frame frame;
    uint32_t first;

    start(&model);
    line_clear();
    line_frame(CRT_FRAME_HELLO, 7, 0, NULL, 0);
    line_frame(CRT_FRAME_HELLO, 7, 0, NULL, 0);
    line_frame(CRT_FRAME_HELLO, 8, 0, NULL, 0);
    line_frame(CRT_FRAME_LOG, 8, 0, NULL, 0); /* not for a server */
    EXPECT(crt_rpc_poll(&server) == 4);
    frame = line_next();
    first = frame.session;
    EXPECT(frame.kind == CRT_FRAME_WELCOME && first != 0 && first != session);
    EXPECT(crt_get32(frame.data) == CRT_RPC_VERSION);
    EXPECT(crt_get32(frame.data + 4) == LINE_MOST);
    EXPECT(crt_get32(frame.data + 8) == 77);
    EXPECT(crt_get32(frame.data + 12) == 1000);
    EXPECT(crt_get32(frame.data + 16) == LINE_MEMORY);
    EXPECT(crt_get32(frame.data + 20) == CRT_RPC_OBJECTS);
    EXPECT(crt_get32(frame.data + 24) == 1);
    EXPECT(crt_get32(frame.data + 28) == 7);
    EXPECT(frame.bytes == 32 + 9 + 5);
    EXPECT(memcmp(frame.data + 32, "two-0123\0here", 14) == 0);
    EXPECT(line_next().session == first); /* asked twice, offered once */
    EXPECT(line_next().session != first);
    EXPECT(line_next().kind == 0);
    memset(longest, 'a', sizeof longest - 1);
    config.content = longest;
    config.ticks = NULL;
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
    session = line_hello(1);
    EXPECT(session != 0);
    line_clear();
    line_frame(CRT_FRAME_HELLO, 1, 0, NULL, 0);
    crt_rpc_poll(&server);
    frame = line_next();
    EXPECT(frame.bytes == LINE_MOST && frame.data[LINE_MOST - 1] == 0);
    EXPECT(frame.data[LINE_MOST - 2] == 0 && frame.data[LINE_MOST - 3] == 'a');
    EXPECT(crt_get32(frame.data + 12) == 0 && crt_get32(frame.data + 24) == 0);
}

/* A nonce whose checksum is 0, or the session that there is, is drawn again. */
static void test_no_session_is_zero(void)
{
    uint8_t from[12];
    uint32_t nonce;

    config = line_config(&model);
    config.ticks = NULL;
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
    memset(from, 0, sizeof from);
    nonce = 0x59A3C794u;
    crt_put32(from, nonce);
    EXPECT(crt_crc32(0, from, sizeof from) == 0);
    EXPECT(line_hello(nonce) != 0);
    EXPECT(server.welcomes == 2);
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
    crt_put32(from, 5);
    server.session = crt_crc32(0, from, sizeof from);
    EXPECT(line_hello(5) != server.session && server.welcomes == 2);
}

static void test_sessions(void)
{
    static const uint32_t echo[1] = {CRT_RPC_ECHO};
    uint32_t other;
    uint8_t data[4] = {0, 0, 0, 0};

    config = line_config(&model);
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
    line_clear();
    line_frame(CRT_FRAME_CALL, 0, 1, data, 4); /* before any hello */
    EXPECT(crt_rpc_poll(&server) == 1 && line_next().kind == CRT_FRAME_LOST);
    start(&model);
    EXPECT(call_with(echo, 1, "abc", 3) == CRT_OK);
    EXPECT(memcmp(answered, "abc", 3) == 0);
    EXPECT(call(CRT_RPC_ALLOCATE, 16, 0, 0, 0) >= 0);
    other = line_hello(99); /* one that came late: no call follows */
    EXPECT(other != session);
    EXPECT(call_with(echo, 1, "abc", 3) == CRT_OK);
    line_clear();
    line_frame(CRT_FRAME_CALL, other, 1, data, 4);
    crt_rpc_poll(&server);
    EXPECT(line_next().session == other); /* it was real */
    EXPECT(server.objects[CRT_RPC_OBJECTS - 1].kind == CRT_RPC_FREE);
    line_clear();
    line_frame(CRT_FRAME_CALL, session, 3, data, 4);
    crt_rpc_poll(&server);
    EXPECT(line_next().kind == CRT_FRAME_LOST);
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK); /* a reset */
    line_clear();
    line_frame(CRT_FRAME_CALL, other, 2, data, 4);
    crt_rpc_poll(&server);
    EXPECT(line_next().kind == CRT_FRAME_LOST);
}

/* A call is done once, however often it comes. */
static void test_sequence(void)
{
    uint8_t data[8];
    const uint32_t words[2] = {CRT_RPC_ALLOCATE, 16};
    uint32_t size = line_data(data, words, 2, NULL, 0);
    uint32_t first;
    uint32_t i;

    start(&model);
    line_clear();
    line_frame(CRT_FRAME_CALL, session, 3, data, size); /* not yet */
    crt_rpc_poll(&server);
    EXPECT(line_next().sequence == 0);
    line_clear();
    for (i = 0; i < 3; i++)
        line_frame(CRT_FRAME_CALL, session, 1, data, size);
    crt_rpc_poll(&server);
    sequence = 1;
    first = crt_get32(reply().data);
    EXPECT(crt_get32(reply().data) == first);
    EXPECT(crt_get32(reply().data) == first);
    EXPECT(call(CRT_RPC_ALLOCATE, 16, 0, 0, 0) != (int32_t)first);
    line_clear();
    line_frame(CRT_FRAME_CALL, session, 1, data, size); /* late */
    crt_rpc_poll(&server);
    EXPECT(reply().sequence == 2);
}

static void test_bad_calls(void)
{
    uint32_t words[5] = {CRT_RPC_CALL_COUNT, 0, 0, 0, 0};
    uint32_t i;

    start(&model);
    EXPECT(call_with(words, 1, NULL, 0) == CRT_ERR_CALL);
    EXPECT(call_with(words, 0, "abc", 3) == CRT_ERR_CALL);
    for (i = 0; i < CRT_RPC_CALL_COUNT; i++) {
        words[0] = i;
        if (i == CRT_RPC_ECHO || i == CRT_RPC_TICKS || i == CRT_RPC_CREATE)
            continue;
        EXPECT(call_with(words, 1, NULL, 0) == CRT_ERR_CALL);
        if (i != CRT_RPC_ALLOCATE)
            EXPECT(call(i, 0, 0, 0, 0) == CRT_ERR_INDEX); /* no object */
    }
    EXPECT(call(CRT_RPC_RELEASE, CRT_RPC_OBJECTS, 0, 0, 0) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_TICKS, 0, 0, 0, 0) == CRT_OK);
    EXPECT(crt_get32(answered) == line.now);
}

static void test_memory(void)
{
    int32_t all[CRT_RPC_OBJECTS];
    int32_t i;

    start(&model);
    EXPECT(call(CRT_RPC_ALLOCATE, LINE_MEMORY + 1, 0, 0, 0) == CRT_ERR_MEMORY);
    for (i = 0; i < CRT_RPC_OBJECTS; i++) {
        all[i] = call(CRT_RPC_ALLOCATE, i == 0 ? 0 : 20, 0, 0, 0);
        EXPECT(all[i] >= 0);
    }
    EXPECT(server.objects[all[0]].bytes == 16);
    EXPECT(server.objects[all[1]].at == 16);
    EXPECT(call(CRT_RPC_ALLOCATE, 16, 0, 0, 0) == CRT_ERR_MEMORY);
    EXPECT(call(CRT_RPC_RELEASE, (uint32_t)all[2], 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RELEASE, (uint32_t)all[2], 0, 0, 0) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_RELEASE, (uint32_t)all[3], 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_ALLOCATE, 64, 0, 0, 0) == all[2]);
    EXPECT(server.objects[all[2]].at == 48); /* both holes make one */
    EXPECT(call(CRT_RPC_ALLOCATE, LINE_MEMORY, 0, 0, 0) == CRT_ERR_MEMORY);
}

/* The lowest hole is taken, whatever the order of the objects. */
static void test_holes(void)
{
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;

    start(&model);
    a = call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);
    b = call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);
    c = call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);
    EXPECT(call(CRT_RPC_RELEASE, (uint32_t)a, 0, 0, 0) == CRT_OK);
    d = call(CRT_RPC_ALLOCATE, 64, 0, 0, 0);
    EXPECT(d == a && server.objects[d].at == 48);
    EXPECT(call(CRT_RPC_RELEASE, (uint32_t)c, 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_ALLOCATE, 16, 0, 0, 0) == c);
    EXPECT(server.objects[c].at == 0 && server.objects[b].at == 16);
    a = call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);
    EXPECT(server.objects[a].at == 32);
}

static void test_bytes(void)
{
    uint32_t b;

    start(&model);
    b = (uint32_t)call(CRT_RPC_ALLOCATE, 200, 0, 0, 0);
    EXPECT(write(b, 190, "0123456789", 10) == CRT_OK);
    EXPECT(write(b, 208, "", 0) == CRT_OK);
    EXPECT(write(b, 200, "0123456789", 9) == CRT_ERR_SIZE);
    EXPECT(write(b, 0xFFFFFFFF, "0123456789", 9) == CRT_ERR_SIZE);
    EXPECT(write(b + 1, 0, "0123456789", 9) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_READ, b, 195, 5, 0) == CRT_OK);
    EXPECT(memcmp(answered, "56789", 5) == 0);
    EXPECT(call(CRT_RPC_READ, b, 200, 9, 0) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_READ, b, 0, LINE_MOST - 4, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_READ, b, 0, LINE_MOST - 3, 0) == CRT_ERR_SIZE);
}

static void test_log(void)
{
    static char text[200];
    struct crt_frame frame;

    start(&model);
    line_clear();
    EXPECT(crt_rpc_log(&server, "warm") == CRT_OK);
    memset(text, 'x', sizeof text - 1);
    EXPECT(crt_rpc_log(&server, text) == CRT_OK);
    frame = line_next();
    EXPECT(frame.kind == CRT_FRAME_LOG && frame.sequence == 1);
    EXPECT(frame.bytes == 4 && memcmp(frame.data, "warm", 4) == 0);
    frame = line_next();
    EXPECT(frame.sequence == 2 && frame.bytes == LINE_MOST);
}

int main(void)
{
    test_init();
    test_welcome();
    test_no_session_is_zero();
    test_sessions();
    test_sequence();
    test_bad_calls();
    test_memory();
    test_holes();
    test_bytes();
    test_log();
    return failures != 0;
}

#else

int main(void)
{
    return 0;
}

#endif
