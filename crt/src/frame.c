/* frame.c: frames between flags, with bytes stuffed and a checksum.
 * Knows no call and no session. What comes in may be anything. */
#include "crt/frame.h"

#ifndef CRT_NO_RPC

#include "crt/crc.h"

enum {
    FLAG = 0x7E,   /* before and after each frame, and never in one */
    ESCAPE = 0x7D, /* the next byte is FLIP of what is meant */
    FLIP = 0x20,
    XON = 0x11, /* a line may take these two for its own */
    XOFF = 0x13
};

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) | get16(at + 2) << 16;
}

static void put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

void crt_frame_begin(struct crt_frame_input *in, uint8_t *room, uint32_t bytes)
{
    in->room = room;
    in->room_bytes = bytes;
    in->count = 0;
    in->dropped = 0;
    in->escaped = 0;
    in->skipping = 1; /* what comes first may be the end of something */
}

/* At a flag: whether what has come since the last one is a frame. */
static int finish(struct crt_frame_input *in, struct crt_frame *frame)
{
    const uint8_t *room = in->room;
    uint32_t count = in->count;
    int good = 0;

    if (in->skipping == 0u && in->escaped == 0u && count >= CRT_FRAME_EXTRA &&
        get16(room + 2) == count - CRT_FRAME_EXTRA && room[1] == 0u &&
        crt_crc32(0, room, count - 4u) == get32(room + count - 4u)) {
        good = 1;
    } else if (count != 0u) {
        in->dropped++;
    } else {
        /* nothing has come */
    }
    in->count = 0;
    in->escaped = 0;
    in->skipping = 0;
    if (!good) {
        return 0;
    }
    frame->kind = room[0];
    frame->session = get32(room + 4);
    frame->sequence = get32(room + 8);
    frame->data = room + CRT_FRAME_HEADER;
    frame->bytes = get16(room + 2);
    return 1;
}

int crt_frame_take(struct crt_frame_input *in, uint8_t byte,
                   struct crt_frame *frame)
{
    if (byte == FLAG) {
        return finish(in, frame);
    }
    if (in->skipping != 0u) {
        return 0;
    }
    if (byte == ESCAPE && !in->escaped) {
        in->escaped = 1;
        return 0;
    }
    if (in->count == in->room_bytes) {
        in->skipping = 1; /* full: only a flag may come */
        return 0;
    }
    in->room[in->count++] = in->escaped ? (uint8_t)(byte ^ FLIP) : byte;
    in->escaped = 0;
    if (in->count == CRT_FRAME_HEADER &&
        get16(in->room + 2) > in->room_bytes - CRT_FRAME_EXTRA) {
        in->skipping = 1;
    }
    return 0;
}

static void send_bytes(const uint8_t *data, uint32_t bytes, crt_byte_put *put,
                       void *context)
{
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        uint8_t byte = data[i];

        if (byte == FLAG || byte == ESCAPE || byte == XON || byte == XOFF) {
            put(context, ESCAPE);
            byte ^= FLIP;
        }
        put(context, byte);
    }
}

void crt_frame_header(const struct crt_frame *frame, uint32_t tail_bytes,
                      uint8_t *header)
{
    const uint32_t bytes = frame->bytes + tail_bytes;

    header[0] = frame->kind;
    header[1] = 0;
    header[2] = (uint8_t)bytes;
    header[3] = (uint8_t)(bytes >> 8);
    put32(header + 4, frame->session);
    put32(header + 8, frame->sequence);
}

void crt_frame_send_with(const struct crt_frame *frame, const uint8_t *tail,
                         uint32_t tail_bytes, crt_byte_put *put, void *context)
{
    uint8_t header[CRT_FRAME_HEADER];
    uint8_t checksum[4];
    uint32_t crc;

    crt_frame_header(frame, tail_bytes, header);
    crc = crt_crc32(0, header, sizeof header);
    if (frame->bytes > 0u) {
        crc = crt_crc32(crc, frame->data, frame->bytes);
    }
    if (tail_bytes > 0u) {
        crc = crt_crc32(crc, tail, tail_bytes);
    }
    put32(checksum, crc);
    put(context, FLAG);
    send_bytes(header, sizeof header, put, context);
    send_bytes(frame->data, frame->bytes, put, context);
    send_bytes(tail, tail_bytes, put, context);
    send_bytes(checksum, sizeof checksum, put, context);
    put(context, FLAG);
}

void crt_frame_send(const struct crt_frame *frame, crt_byte_put *put,
                    void *context)
{
    crt_frame_send_with(frame, NULL, 0, put, context);
}

#endif
