/* rpc.c: sessions: which call is next, and which answer to give again.
 * Knows no graph (calls.c) and no line. What arrives may be anything. */
#include "crt/rpc.h"

#ifndef CRT_NO_RPC

#include "crt/calls.h"
#include "crt/crc.h"

enum { MOST_WORDS = 4, WELCOME_BYTES = 32 };

/* 32-bit arguments of each call; none has more than MOST_WORDS. */
static const uint8_t word_counts[CRT_RPC_CALL_COUNT] = {
    0, 0, 1, 1, 2, 3, 2, 0, 4, 4, 2, 2, 1, 1, 2, 4, 1, 4, 3};

static int is_ready(const struct crt_rpc *r)
{
    return r != NULL && r->config != NULL;
}

static int check_config(const struct crt_rpc_config *c)
{
    if (c == NULL || c->model == NULL || c->content == NULL ||
        c->board == NULL || c->put == NULL || c->get == NULL ||
        c->memory == NULL || c->room == NULL) {
        return CRT_ERR_NULL;
    }
    if (c->model->accelerator != NULL) {
        return CRT_ERR_DEVICE;
    }
    if (((uintptr_t)c->memory & (CRT_RPC_ALIGN - 1u)) != 0u ||
        c->model->region_align > CRT_RPC_ALIGN) {
        return CRT_ERR_ALIGN;
    }
    if (c->room_bytes < CRT_RPC_ROOM_LEAST ||
        c->room_bytes > CRT_RPC_ROOM(65535u)) {
        return CRT_ERR_SIZE;
    }
    return CRT_OK;
}

int crt_rpc_init(struct crt_rpc *r, const struct crt_rpc_config *config)
{
    int error;
    uint32_t i;

    if (r == NULL) {
        return CRT_ERR_NULL;
    }
    r->config = NULL;
    error = check_config(config);
    if (error != CRT_OK) {
        return error;
    }
    r->config = config;
    r->most = config->room_bytes / 2u - CRT_FRAME_EXTRA;
    r->reply = config->room + config->room_bytes / 2u;
    r->reply_bytes = 0;
    r->session = 0;
    r->sequence = 0;
    r->offered = 0;
    r->nonce = 0;
    r->welcomes = 0;
    r->logs = 0;
    for (i = 0; i < (uint32_t)CRT_RPC_OBJECTS; i++) {
        r->objects[i].kind = CRT_RPC_FREE;
    }
    /* MISRA 11.8: config is const, not its room */
    crt_frame_begin(&r->in, config->room, config->room_bytes / 2u);
    return CRT_OK;
}

static void send(const struct crt_rpc *r, uint8_t kind, uint32_t session,
                 uint32_t sequence, const uint8_t *data, uint32_t bytes)
{
    struct crt_frame frame;

    frame.kind = kind;
    frame.session = session;
    frame.sequence = sequence;
    frame.data = data;
    frame.bytes = bytes;
    /* MISRA 11.8: config is const, not its context */
    crt_frame_send(&frame, r->config->put, r->config->context);
}

/* ---- sessions ------------------------------------------------------------ */

/* A number that no session before has had, but by chance. */
static uint32_t draw(struct crt_rpc *r, uint32_t nonce)
{
    const struct crt_rpc_config *c = r->config;
    uint8_t from[12];
    uint32_t session;

    crt_put32(from, nonce);
    crt_put32(from + 4, c->ticks == NULL ? 0u : c->ticks(c->context));
    do {
        crt_put32(from + 8, r->welcomes++);
        session = crt_crc32(0, from, sizeof from);
    } while (session == 0u || session == r->session);
    return session;
}

/* As much of a text as fits, and its end. */
static uint32_t put_text(uint8_t *to, uint32_t most, const char *text)
{
    uint32_t i;

    for (i = 0; i + 1u < most && text[i] != '\0'; i++) {
        to[i] = (uint8_t)text[i];
    }
    to[i] = 0;
    return i + 1u;
}

/* Offers a session: it begins with its first call, so that a hello that comes
 * late ends nothing. The answer is put together where the hello was. */
static void welcome(struct crt_rpc *r, uint32_t nonce)
{
    const struct crt_rpc_config *c = r->config;
    uint8_t *to = r->in.room;
    uint32_t at = WELCOME_BYTES;

    if (r->offered == 0u || r->nonce != nonce) {
        r->offered = draw(r, nonce);
    }
    r->nonce = nonce;
    crt_put32(to, CRT_RPC_VERSION);
    crt_put32(to + 4, r->most);
    crt_put32(to + 8, c->line_bytes);
    crt_put32(to + 12, c->ticks == NULL ? 0u : c->hz);
    crt_put32(to + 16, c->memory_bytes);
    crt_put32(to + 20, CRT_RPC_OBJECTS);
    crt_put32(to + 24, c->ticks != NULL);
    crt_put32(to + 28, nonce);
    at += put_text(to + at, r->most - at - 1u, c->content);
    at += put_text(to + at, r->most - at, c->board);
    send(r, CRT_FRAME_WELCOME, r->offered, 0, to, at);
}

/* All that the session before has left is gone. */
static void begin(struct crt_rpc *r)
{
    uint32_t i;

    r->session = r->offered;
    r->offered = 0;
    r->sequence = 0;
    r->reply_bytes = 0;
    for (i = 0; i < (uint32_t)CRT_RPC_OBJECTS; i++) {
        r->objects[i].kind = CRT_RPC_FREE;
    }
}

/* ---- calls --------------------------------------------------------------- */

static void send_reply(const struct crt_rpc *r)
{
    send(r, CRT_FRAME_REPLY, r->session, r->sequence, r->reply, r->reply_bytes);
}

void crt_rpc_working(struct crt_rpc *r)
{
    send(r, CRT_FRAME_WORKING, r->session, r->sequence, NULL, 0);
}

/* Does the next call: its number, its words, its data. */
static void answer(struct crt_rpc *r, const struct crt_frame *frame)
{
    uint32_t words[MOST_WORDS];
    uint32_t call = CRT_RPC_CALL_COUNT;
    uint32_t count = 0;
    int32_t status = CRT_ERR_CALL;
    uint32_t i;

    r->reply_bytes = 0;
    if (frame->bytes >= 4u) {
        call = crt_get32(frame->data);
    }
    if (call < (uint32_t)CRT_RPC_CALL_COUNT) {
        count = word_counts[call];
    }
    if (call < (uint32_t)CRT_RPC_CALL_COUNT &&
        frame->bytes >= 4u * (count + 1u)) {
        for (i = 0; i < count; i++) {
            words[i] = crt_get32(frame->data + 4u * (i + 1u));
        }
        status = crt_rpc_do(r, call, words, frame->data + 4u * (count + 1u),
                            frame->bytes - 4u * (count + 1u));
    }
    crt_put32(r->reply, (uint32_t)status);
    r->reply_bytes += 4u;
}

/* A call of this session: the next one is done; for any other the last answer
 * is given again, which says how far it is. */
static void take_call(struct crt_rpc *r, const struct crt_frame *frame)
{
    if (r->offered != 0u && frame->session == r->offered) {
        begin(r);
    }
    if (r->session == 0u || frame->session != r->session) {
        send(r, CRT_FRAME_LOST, frame->session, frame->sequence, NULL, 0);
        return;
    }
    if (frame->sequence == r->sequence + 1u) {
        r->sequence++;
        answer(r, frame);
    }
    send_reply(r);
}

int crt_rpc_poll(struct crt_rpc *r)
{
    struct crt_frame frame;
    int frames = 0;
    int byte;

    if (!is_ready(r)) {
        return CRT_ERR_NULL;
    }
    while ((byte = r->config->get(r->config->context)) >= 0) {
        if (!crt_frame_take(&r->in, (uint8_t)byte, &frame)) {
            continue;
        }
        frames++;
        if (frame.kind == (uint8_t)CRT_FRAME_HELLO) {
            welcome(r, frame.session);
        } else if (frame.kind == (uint8_t)CRT_FRAME_CALL) {
            take_call(r, &frame);
        } else {
            /* of another board */
        }
    }
    return frames;
}

int crt_rpc_log(struct crt_rpc *r, const char *text)
{
    uint32_t bytes = 0;

    if (!is_ready(r) || text == NULL) {
        return CRT_ERR_NULL;
    }
    while (bytes < r->most && text[bytes] != '\0') {
        bytes++;
    }
    send(r, CRT_FRAME_LOG, r->session, ++r->logs, (const uint8_t *)text, bytes);
    return CRT_OK;
}

#endif
