/* Every way in which a frame can arrive, or not, on a line that changes bytes.
 * Prints each failed line; exit code 1 if there was one. */
#include "crt/frame.h"

#include <string.h>

#ifndef CRT_NO_RPC

#include "expect.h"

enum { ROOM = 48 };

static uint8_t wire[256];
static uint32_t wired;
static uint8_t room[ROOM];
static struct crt_frame_input in;
static struct crt_frame got;

static void put(void *context, uint8_t byte)
{
    (void)context;
    wire[wired++] = byte;
}

static void send(const uint8_t *data, uint32_t bytes)
{
    struct crt_frame frame;

    frame.kind = CRT_FRAME_CALL;
    frame.session = 0x7E7D1113;
    frame.sequence = 5;
    frame.data = data;
    frame.bytes = bytes;
    wired = 0;
    crt_frame_send(&frame, put, NULL);
}

/* How many whole frames there are in these bytes. */
static int take(const uint8_t *bytes, uint32_t count)
{
    int frames = 0;
    uint32_t i;

    for (i = 0; i < count; i++)
        frames += crt_frame_take(&in, bytes[i], &got);
    return frames;
}

/* @req crt_frame_begin, crt_frame_take:Errors, crt_frame_send
 * @req crt_frame_send:Time */
static void test_all_bytes(void)
{
    uint8_t data[ROOM - 16];
    uint32_t first;
    uint32_t i;

    crt_frame_begin(&in, room, ROOM);
    for (first = 0; first < 256; first += 13) {
        for (i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)(first + i);
        send(data, sizeof data);
        EXPECT(wired <= 2 * (sizeof data + CRT_FRAME_EXTRA) + 2);
        for (i = 1; i + 1 < wired; i++)
            EXPECT(wire[i] != 0x7E && wire[i] != 0x11 && wire[i] != 0x13);
        EXPECT(take(wire, wired) == 1);
        EXPECT(got.kind == CRT_FRAME_CALL && got.session == 0x7E7D1113);
        EXPECT(got.sequence == 5 && got.bytes == sizeof data);
        EXPECT(memcmp(got.data, data, sizeof data) == 0);
    }
    send(NULL, 0);
    EXPECT(take(wire, wired) == 1 && got.bytes == 0 && in.dropped == 0);
}

/* The bytes that docs/rpc-protocol.md shows. */
static void test_on_the_wire(void)
{
    static const uint8_t want[] = {0x7E, 3,    0,    2,    0,    0x7D, 0x33,
                                   0x7D, 0x31, 0x7D, 0x5D, 0x7D, 0x5E, 5,
                                   0,    0,    0,    0xAB, 0xCD};
    static const uint8_t data[] = {0xAB, 0xCD};

    send(data, 2);
    EXPECT(wired >= sizeof want + 5 && memcmp(wire, want, sizeof want) == 0);
    EXPECT(wire[wired - 1] == 0x7E);
}

/* Each bit of a frame turned over, each byte left out, or there twice. */
static void test_damage(void)
{
    static const uint8_t data[] = {1, 2, 3, 0x7D, 0x5D, 0};
    uint8_t copy[258];
    uint32_t bit;
    uint32_t i;

    send(data, sizeof data);
    crt_frame_begin(&in, room, ROOM);
    for (bit = 8; bit < 8 * (wired - 1); bit++) {
        memcpy(copy, wire, wired);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        EXPECT(take(copy, wired) == 0);
        EXPECT(take(wire, wired) == 1); /* the next one arrives */
    }
    for (i = 1; i + 1 < wired; i++) {
        memcpy(copy, wire, i);
        memcpy(copy + i, wire + i + 1, wired - i - 1);
        EXPECT(take(copy, wired - 1) == 0 && take(wire, wired) == 1);
        memcpy(copy, wire, i);
        memcpy(copy + i, wire + i - 1, wired - i + 1);
        EXPECT(take(copy, wired + 1) == (i == 1)); /* two flags are as one */
        EXPECT(take(wire, wired) == 1);
    }
    EXPECT(in.dropped > 0);
}

/* @req crt_frame_take */
static void test_what_is_no_frame(void)
{
    uint8_t data[ROOM];
    uint8_t noise[300];

    memset(data, 9, sizeof data);
    memset(noise, 0x41, sizeof noise);
    crt_frame_begin(&in, room, ROOM);
    EXPECT(take(noise, sizeof noise) == 0); /* before the first flag */
    EXPECT(in.count == 0);
    send(data, ROOM - 15); /* longer than the room: its data is not read */
    EXPECT(take(wire, wired - 1) == 0);
    EXPECT(in.count == 12 && take(wire, 1) == 0 && in.dropped == 1);
    EXPECT(take(noise, sizeof noise) == 0); /* says it is short, and goes on */
    send(data, ROOM - 16);
    EXPECT(take(wire, wired) == 1 && got.bytes == ROOM - 16);
    crt_frame_begin(&in, room, ROOM);
    EXPECT(take(wire, wired - 1) == 0 && take(noise, 5) == 0);
    EXPECT(take(wire, wired) == 1 && in.dropped == 1);
    EXPECT(take(noise, 20) == 0 && take(wire, wired) == 1);
    noise[3] = 0x7D; /* an escape before a flag */
    EXPECT(take(noise, 4) == 0 && take(wire, wired) == 1);
    noise[0] = 0x7D; /* an escape after an escape */
    noise[1] = 0x7D;
    EXPECT(take(noise, 3) == 0 && take(wire, wired) == 1);
}

/* The one byte that must be 0, with a true checksum. */
static void test_reserved(void)
{
    static const uint8_t one[] = {0x7E, 3, 1, 0, 0,    1,    0,    0,    0,
                                  1,    0, 0, 0, 0xA4, 0xAC, 0xD3, 0xB9, 0x7E};

    crt_frame_begin(&in, room, ROOM);
    EXPECT(take(one, sizeof one) == 0 && in.dropped == 1);
}

int main(void)
{
    test_all_bytes();
    test_on_the_wire();
    test_damage();
    test_what_is_no_frame();
    test_reserved();
    return failures != 0;
}

#else

int main(void)
{
    return 0;
}

#endif
