/* rpc.c: sessions: which call is next, and which answer to give again.
 * Knows no graph (calls.c) and no line. What arrives may be anything. */
#include "crt/rpc.h"

#ifndef CRT_NO_RPC

#include "crt/calls.h"
#include "crt/crc.h"

enum {
    MOST_WORDS = 4,
    WELCOME_BYTES = 32,
    COUNT_BYTES = 8, /* of an offer; behind the start in a welcome */
    OFFER_BYTES = CRT_RPC_START_BYTES + COUNT_BYTES
};

/* 32-bit arguments of each call; none has more than MOST_WORDS. */
static const uint8_t word_counts[CRT_RPC_CALL_COUNT] = {
    0, 0, 1, 1, 2, 3, 2, 0, 4, 4, 2, 2, 1, 1, 2, 4, 1, 4, 3};

static int is_ready(const struct crt_rpc *r)
{
    return r != NULL && r->config != NULL;
}

static uint32_t tag_bytes(const struct crt_rpc_config *c)
{
    return c->key == NULL ? 0u : CRT_RPC_TAG_BYTES;
}

static int check_config(const struct crt_rpc_config *c)
{
    if (c == NULL || c->model == NULL || c->content == NULL ||
        c->board == NULL || c->put == NULL || c->get == NULL ||
        c->memory == NULL || c->room == NULL) {
        return CRT_ERR_NULL;
    }
    if (c->key != NULL && (c->key->secret == NULL || c->key->start == NULL ||
                           c->key->hmac == NULL)) {
        return CRT_ERR_NULL;
    }
    if (c->model->accelerator != NULL) {
        return CRT_ERR_DEVICE;
    }
    if (((uintptr_t)c->memory & (CRT_RPC_ALIGN - 1u)) != 0u ||
        c->model->region_align > CRT_RPC_ALIGN) {
        return CRT_ERR_ALIGN;
    }
    if (c->room_bytes < CRT_RPC_ROOM_LEAST + 2u * tag_bytes(c) ||
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
    r->most = config->room_bytes / 2u - CRT_FRAME_EXTRA - tag_bytes(config);
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

/* ---- tags ---------------------------------------------------------------- */

/* Of a frame with so many bytes of data before the tag. */
static void make_tag(const struct crt_rpc_key *k, const uint8_t *key,
                     const struct crt_frame *frame, uint8_t *tag)
{
    uint8_t header[CRT_FRAME_HEADER];

    crt_frame_header(frame, CRT_RPC_TAG_BYTES, header);
    k->hmac(key, header, sizeof header, frame->data, frame->bytes, tag);
}

/* Takes the tag from a frame; whether it is the right one. Time says nothing of
 * how much of it is. Without a key every frame is right. */
static int take_tag(const struct crt_rpc_key *k, const uint8_t *key,
                    struct crt_frame *frame)
{
    uint8_t tag[CRT_RPC_KEY_BYTES];
    uint8_t differs = 0;
    uint32_t i;

    if (k == NULL) {
        return 1;
    }
    if (frame->bytes < CRT_RPC_TAG_BYTES) {
        return 0;
    }
    frame->bytes -= CRT_RPC_TAG_BYTES;
    make_tag(k, key, frame, tag);
    for (i = 0; i < CRT_RPC_TAG_BYTES; i++) {
        differs |= (uint8_t)(tag[i] ^ frame->data[frame->bytes + i]);
    }
    return differs == 0u;
}

/* What the board puts in: no two of its offers have the same. */
static void put_offer(const struct crt_rpc_key *k, uint8_t *to)
{
    crt_copy(to, k->start, CRT_RPC_START_BYTES);
    crt_put32(to + CRT_RPC_START_BYTES, (uint32_t)k->offers);
    crt_put32(to + CRT_RPC_START_BYTES + 4u, (uint32_t)(k->offers >> 32));
}

/* The key of the session that is offered: of what both sides have put in. */
static void offer(struct crt_rpc_key *k, const uint8_t *asked)
{
    uint8_t mine[OFFER_BYTES];

    k->offers++;
    crt_copy(k->asked, asked, CRT_RPC_NONCE_BYTES);
    put_offer(k, mine);
    k->hmac(k->secret, k->asked, CRT_RPC_NONCE_BYTES, mine, OFFER_BYTES,
            k->offered);
}

static int was_asked(const struct crt_rpc_key *k, const uint8_t *asked)
{
    uint8_t differs = 0;
    uint32_t i;

    for (i = 0; i < CRT_RPC_NONCE_BYTES; i++) {
        differs |= (uint8_t)(k->asked[i] ^ asked[i]);
    }
    return differs == 0u;
}

/* A frame with the tag of its session, where there are a key and a session. */
static void send(const struct crt_rpc *r, uint8_t kind, uint32_t session,
                 uint32_t sequence, const uint8_t *data, uint32_t bytes)
{
    const struct crt_rpc_key *k = r->config->key;
    uint8_t tag[CRT_RPC_KEY_BYTES];
    struct crt_frame frame;

    frame.kind = kind;
    frame.session = session;
    frame.sequence = sequence;
    frame.data = data;
    frame.bytes = bytes;
    if (k == NULL || session == 0u || kind == (uint8_t)CRT_FRAME_LOST) {
        /* MISRA 11.8: config is const, not its context */
        crt_frame_send(&frame, r->config->put, r->config->context);
        return;
    }
    make_tag(k, kind == (uint8_t)CRT_FRAME_WELCOME ? k->offered : k->session,
             &frame, tag);
    /* MISRA 11.8: as above */
    crt_frame_send_with(&frame, tag, CRT_RPC_TAG_BYTES, r->config->put,
                        r->config->context);
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

/* To a host that has no key: that there is one, and nothing more. */
static void ask_for_key(struct crt_rpc *r, uint32_t nonce)
{
    uint8_t *to = r->in.room;
    uint32_t i;

    for (i = 0; i < (uint32_t)WELCOME_BYTES; i++) {
        to[i] = 0;
    }
    crt_put32(to, CRT_RPC_VERSION_KEYED);
    crt_put32(to + 28, nonce);
    send(r, CRT_FRAME_WELCOME, 0, 0, to, WELCOME_BYTES);
}

/* Offers a session: it begins with its first call, so that a hello that comes
 * late ends nothing. The answer is put together where the hello was. */
static void welcome(struct crt_rpc *r, const struct crt_frame *hello)
{
    const struct crt_rpc_config *c = r->config;
    struct crt_rpc_key *k = c->key;
    uint8_t *to = r->in.room;
    uint32_t at = WELCOME_BYTES;

    if (r->offered == 0u || r->nonce != hello->session ||
        (k != NULL && !was_asked(k, hello->data))) {
        r->offered = draw(r, hello->session);
        if (k != NULL) {
            offer(k, hello->data);
        }
    }
    r->nonce = hello->session;
    crt_put32(to, k == NULL ? CRT_RPC_VERSION : CRT_RPC_VERSION_KEYED);
    crt_put32(to + 4, r->most);
    crt_put32(to + 8, c->line_bytes);
    crt_put32(to + 12, c->ticks == NULL ? 0u : c->hz);
    crt_put32(to + 16, c->memory_bytes);
    crt_put32(to + 20, CRT_RPC_OBJECTS);
    crt_put32(to + 24, c->ticks != NULL);
    crt_put32(to + 28, r->nonce);
    if (k != NULL) {
        put_offer(k, to + at);
        at += OFFER_BYTES;
    }
    at += put_text(to + at, r->most - at - 1u, c->content);
    at += put_text(to + at, r->most - at, c->board);
    send(r, CRT_FRAME_WELCOME, r->offered, 0, to, at);
}

/* A line with a key serves a host that has one; one without it is told so. */
static void take_hello(struct crt_rpc *r, const struct crt_frame *hello)
{
    if (r->config->key != NULL && hello->bytes != CRT_RPC_NONCE_BYTES) {
        ask_for_key(r, hello->session);
    } else {
        welcome(r, hello);
    }
}

/* All that the session before has left is gone. */
static void begin(struct crt_rpc *r)
{
    struct crt_rpc_key *k = r->config->key;
    uint32_t i;

    r->session = r->offered;
    r->offered = 0;
    if (k != NULL) {
        crt_copy(k->session, k->offered, CRT_RPC_KEY_BYTES);
    }
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
            words[i] = crt_get32(frame->data + 4u * ((size_t)i + 1u));
        }
        status =
            crt_rpc_do(r, call, words, frame->data + 4u * ((size_t)count + 1u),
                       frame->bytes - 4u * (count + 1u));
    }
    crt_put32(r->reply, (uint32_t)status);
    r->reply_bytes += 4u;
}

/* Whether a call is of this session, or begins it; and of who knows the key. */
static int is_served(struct crt_rpc *r, struct crt_frame *frame)
{
    const struct crt_rpc_key *k = r->config->key;

    if (r->offered != 0u && frame->session == r->offered) {
        if (!take_tag(k, k == NULL ? NULL : k->offered, frame)) {
            return 0;
        }
        begin(r);
        return 1;
    }
    if (r->session == 0u || frame->session != r->session) {
        send(r, CRT_FRAME_LOST, frame->session, frame->sequence, NULL, 0);
        return 0;
    }
    return take_tag(k, k == NULL ? NULL : k->session, frame);
}

/* A call of this session: the next one is done; for any other the last answer
 * is given again, which says how far it is. Numbers of a session with a key do
 * not begin anew. */
static void take_call(struct crt_rpc *r, struct crt_frame *frame)
{
    if (!is_served(r, frame)) {
        return;
    }
    if (frame->sequence == r->sequence + 1u &&
        (r->config->key == NULL || frame->sequence != 0u)) {
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
            take_hello(r, &frame);
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
