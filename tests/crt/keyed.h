/* keyed.h: the other end of a line with a key, by hand: a host that has it. */
#ifndef KEYED_H
#define KEYED_H

#include "crt/hmac.h"
#include "crt/rpc.h"
#include "line.h"

enum { TAG = CRT_RPC_TAG_BYTES, OFFER = CRT_RPC_START_BYTES + 8 };

static const uint8_t secret[CRT_RPC_KEY_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const uint8_t begun[CRT_RPC_START_BYTES] = {0xAB, 0xCD};
static uint8_t asked[CRT_RPC_NONCE_BYTES] = {9, 8, 7};
static uint8_t keyed_room[CRT_RPC_KEYED_ROOM(LINE_MOST)];
static uint8_t session_key[CRT_RPC_KEY_BYTES];
static struct crt_rpc_key key;

static struct crt_rpc_config keyed_config(const struct crt_model *model)
{
    struct crt_rpc_config c = line_config(model);

    memset(&key, 0, sizeof key);
    key.secret = secret;
    key.start = begun;
    key.hmac = crt_hmac_sha256;
    c.key = &key;
    c.room = keyed_room;
    c.room_bytes = sizeof keyed_room;
    return c;
}

/* Says hello; the welcome, whose session's key is then known here. */
static struct crt_frame keyed_hello(uint32_t nonce)
{
    struct crt_frame frame;

    line_clear();
    line_frame(CRT_FRAME_HELLO, nonce, 0, asked, sizeof asked);
    crt_rpc_poll(&server);
    frame = line_next();
    if (frame.kind == CRT_FRAME_WELCOME && frame.bytes >= 32 + OFFER + TAG)
        crt_hmac_sha256(secret, asked, sizeof asked, frame.data + 32, OFFER,
                        session_key);
    return frame;
}

/* Whether the tag of a frame is that of the session; it is then taken off. */
static int is_tagged(struct crt_frame *frame)
{
    uint8_t header[CRT_FRAME_HEADER];
    uint8_t tag[CRT_HMAC_BYTES];

    if (frame->bytes < TAG)
        return 0;
    frame->bytes -= TAG;
    crt_frame_header(frame, TAG, header);
    crt_hmac_sha256(session_key, header, sizeof header, frame->data,
                    frame->bytes, tag);
    return memcmp(tag, frame->data + frame->bytes, TAG) == 0;
}

/* A call with a tag, of which a bit may be wrong; -1: none is. */
static void keyed_call(uint32_t session, uint32_t sequence, const uint8_t *data,
                       uint32_t bytes, int wrong_bit)
{
    uint8_t header[CRT_FRAME_HEADER];
    uint8_t tag[CRT_HMAC_BYTES];
    struct crt_frame frame =
        line_made(CRT_FRAME_CALL, session, sequence, data, bytes);

    crt_frame_header(&frame, TAG, header);
    crt_hmac_sha256(session_key, header, sizeof header, data, bytes, tag);
    if (wrong_bit >= 0)
        tag[wrong_bit / 8] ^= (uint8_t)(1 << wrong_bit % 8);
    line_clear();
    crt_frame_send_with(&frame, tag, TAG, line_give, NULL);
}

#endif
