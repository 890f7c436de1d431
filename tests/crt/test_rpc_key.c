/* A line with a key: who has it is served, all else is dropped without a word,
 * and what was recorded does nothing. Prints each failed line. */
#include "crt/rpc.h"

#ifndef CRT_NO_RPC

#include "expect.h"
#include "keyed.h"
#include "model.h"

static struct crt_rpc_config config;
static uint32_t session;

static void begin(void)
{
    config = keyed_config(&model);
    EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
}

/* Known answers: RFC 4231, cases 1 to 3; keys are filled up with zeros.
 * @req crt_hmac_sha256 */
static void test_hmac(void)
{
    static const uint8_t wanted[3][4] = {{0xb0, 0x34, 0x4c, 0x61},
                                         {0x5b, 0xdc, 0xc1, 0x46},
                                         {0x77, 0x3e, 0xa9, 0x1e}};
    static const uint8_t ends[3][4] = {{0x2e, 0x32, 0xcf, 0xf7},
                                       {0x64, 0xec, 0x38, 0x43},
                                       {0xce, 0xd5, 0x65, 0xfe}};
    uint8_t keys[3][CRT_HMAC_BYTES];
    uint8_t data[50];
    uint8_t made[CRT_HMAC_BYTES];
    int i;

    memset(keys, 0, sizeof keys);
    memset(keys[0], 0x0b, 20);
    memcpy(keys[1], "Jefe", 4);
    memset(keys[2], 0xaa, 20);
    memset(data, 0xdd, sizeof data);
    for (i = 0; i < 3; i++) {
        if (i == 0)
            crt_hmac_sha256(keys[0], (const uint8_t *)"Hi There", 8, NULL, 0,
                            made);
        else if (i == 1)
            crt_hmac_sha256(keys[1], (const uint8_t *)"what do ya want ", 16,
                            (const uint8_t *)"for nothing?", 12, made);
        else
            crt_hmac_sha256(keys[2], data, 7, data + 7, 43, made);
        EXPECT(memcmp(made, wanted[i], 4) == 0);
        EXPECT(memcmp(made + 28, ends[i], 4) == 0);
    }
}

/* @req rpc.h:CRT_ERR_NULL */
static void test_init(void)
{
    struct crt_rpc_config bad;
    struct crt_rpc_key other;
    int i;

    begin();
    for (i = 0; i < 3; i++) {
        other = key;
        other.secret = i == 0 ? NULL : other.secret;
        other.start = i == 1 ? NULL : other.start;
        other.hmac = i == 2 ? NULL : other.hmac;
        bad = config;
        bad.key = &other;
        EXPECT(crt_rpc_init(&server, &bad) == CRT_ERR_NULL);
    }
    bad = config;
    bad.room_bytes = CRT_RPC_KEYED_ROOM(128u) - 1;
    EXPECT(crt_rpc_init(&server, &bad) == CRT_ERR_SIZE);
    bad.room_bytes++;
    EXPECT(crt_rpc_init(&server, &bad) == CRT_OK);
    EXPECT(server.most == 128);
}

static struct crt_frame hello(uint32_t nonce)
{
    struct crt_frame frame = keyed_hello(nonce);

    EXPECT(frame.kind == CRT_FRAME_WELCOME && frame.bytes > 32 + OFFER + TAG);
    session = frame.session;
    return frame;
}

/* What comes back. */
static struct crt_frame call(uint32_t sequence, const uint8_t *data,
                             uint32_t bytes, int wrong_bit)
{
    keyed_call(session, sequence, data, bytes, wrong_bit);
    EXPECT(crt_rpc_poll(&server) == 1);
    return line_next();
}

static const uint8_t allocate[8] = {CRT_RPC_ALLOCATE, 0, 0, 0, 16, 0, 0, 0};

static int objects(void)
{
    int count = 0;
    int i;

    for (i = 0; i < CRT_RPC_OBJECTS; i++)
        count += server.objects[i].kind != CRT_RPC_FREE;
    return count;
}

static void test_welcome(void)
{
    struct crt_frame frame;
    uint32_t first;

    begin();
    line_clear();
    line_frame(CRT_FRAME_HELLO, 7, 0, NULL, 0); /* of a host without a key */
    EXPECT(crt_rpc_poll(&server) == 1);
    frame = line_next();
    EXPECT(frame.kind == CRT_FRAME_WELCOME && frame.session == 0);
    EXPECT(crt_get32(frame.data) == CRT_RPC_VERSION_KEYED);
    EXPECT(crt_get32(frame.data + 28) == 7 && frame.bytes == 32);
    EXPECT(crt_get32(frame.data + 4) == 0 && crt_get32(frame.data + 16) == 0);
    EXPECT(server.offered == 0);
    frame = hello(7);
    first = frame.session;
    EXPECT(crt_get32(frame.data) == CRT_RPC_VERSION_KEYED);
    EXPECT(crt_get32(frame.data + 4) == LINE_MOST);
    EXPECT(memcmp(frame.data + 32, begun, sizeof begun) == 0);
    EXPECT(crt_get32(frame.data + 48) == (uint32_t)key.offers);
    EXPECT(crt_get32(frame.data + 52) == 0);
    EXPECT(memcmp(frame.data + 56, "two-0123\0here", 14) == 0);
    EXPECT(is_tagged(&frame) && frame.bytes == 56 + 14);
    EXPECT(hello(7).session == first); /* asked twice, offered once */
    EXPECT(hello(8).session != first); /* of another number, anew */
    first = hello(7).session;
    asked[15]++;
    EXPECT(hello(7).session != first); /* another host's */
    key.offers = 0xFFFFFFFFu;
    asked[15]++;
    frame = hello(7);
    EXPECT(crt_get32(frame.data + 48) == 0 && crt_get32(frame.data + 52) == 1);
    EXPECT(is_tagged(&frame));
}

/* @req crt_frame_send_with, crt_frame_header */
static void test_calls(void)
{
    struct crt_frame frame;
    int bit;

    begin();
    hello(1);
    for (bit = 0; bit < 8 * TAG; bit++)
        EXPECT(call(1, allocate, 8, bit).kind == 0);
    EXPECT(server.session == 0 && objects() == 0);
    frame = call(1, allocate, 8, -1);
    EXPECT(frame.kind == CRT_FRAME_REPLY && is_tagged(&frame));
    EXPECT(frame.bytes == 4 && server.session == session && objects() == 1);
    for (bit = 0; bit < 8 * TAG; bit++)
        EXPECT(call(2, allocate, 8, bit).kind == 0);
    EXPECT(objects() == 1);
    line_clear(); /* without a tag, and shorter than one */
    line_frame(CRT_FRAME_CALL, session, 2, allocate, 8);
    EXPECT(crt_rpc_poll(&server) == 1 && line_next().kind == 0);
    frame = call(1, allocate, 8, -1); /* that call again: its answer again */
    EXPECT(is_tagged(&frame) && frame.sequence == 1 && objects() == 1);
    frame = call(3, allocate, 8, -1); /* one is missing */
    EXPECT(is_tagged(&frame) && frame.sequence == 1 && objects() == 1);
    frame = call(2, allocate, 8, -1);
    EXPECT(is_tagged(&frame) && frame.sequence == 2 && objects() == 2);
    server.sequence = 0xFFFFFFFFu; /* numbers do not begin anew */
    frame = call(0, allocate, 8, -1);
    EXPECT(is_tagged(&frame) && objects() == 2);
}

/* Hello and calls that were recorded, before the session ended. */
static void test_what_was_recorded(void)
{
    static uint8_t recorded[LINE_BYTES];
    uint32_t count;
    uint32_t i;

    begin();
    hello(3);
    memcpy(recorded, line.to, line.given);
    count = line.given;
    EXPECT(call(1, allocate, 8, -1).kind == CRT_FRAME_REPLY);
    memcpy(recorded + count, line.to, line.given);
    count += line.given;
    for (i = 0; i < 2; i++) { /* in the session, after a reset of the server */
        line_clear();
        memcpy(line.to, recorded, count);
        line.given = count;
        EXPECT(crt_rpc_poll(&server) == 2);
        EXPECT(objects() == (i == 0 ? 1 : 0));
        EXPECT(crt_rpc_init(&server, &config) == CRT_OK);
    }
}

static void test_other_frames(void)
{
    struct crt_frame frame;

    begin();
    line_clear();
    EXPECT(crt_rpc_log(&server, "early") == CRT_OK);
    frame = line_next();
    EXPECT(frame.kind == CRT_FRAME_LOG && frame.bytes == 5);
    hello(4);
    call(1, allocate, 8, -1);
    line_clear();
    EXPECT(crt_rpc_log(&server, "now") == CRT_OK);
    frame = line_next();
    EXPECT(frame.kind == CRT_FRAME_LOG && is_tagged(&frame));
    EXPECT(frame.bytes == 3);
    line_clear();
    crt_rpc_working(&server);
    frame = line_next();
    EXPECT(frame.kind == CRT_FRAME_WORKING && is_tagged(&frame));
    line_clear(); /* no such session: what anybody may hear */
    line_frame(CRT_FRAME_CALL, session + 1, 1, allocate, 8);
    EXPECT(crt_rpc_poll(&server) == 1);
    frame = line_next();
    EXPECT(frame.kind == CRT_FRAME_LOST && frame.bytes == 0);
}

int main(void)
{
    test_hmac();
    test_init();
    test_welcome();
    test_calls();
    test_what_was_recorded();
    test_other_frames();
    return failures != 0;
}

#else

int main(void)
{
    return 0;
}

#endif
