/* Fuzz target: what the server of crt/rpc.h may get. The first byte says what
 * the others are: bytes of the line, or calls whose frames are made here, with
 * true numbers and checksums; and whether the line has a key: then frames have
 * tags, true ones unless a call says so. For libFuzzer or fuzz_driver.c, under
 * ASan and UBSan. Prints at exit how many were tried, and what became of them.
 */
#include "crt/rpc.h"
#include "fuzz.h"

#include "affine.h"
#include "image.h"
#include "keyed.h"

#include <stdio.h>
#include <stdlib.h>

enum { IMAGE_CHUNK = 96 };

static unsigned long tried, accepted, refused, damaged, untrue;
static int is_keyed;
static const int8_t ones[4] = {1, 1, 1, 1};
static const struct entry entries[2] = {
    {"b", CRT_INT8, 2, {2, 2}, 0, 0, 11, 4, ones},
    {"w", CRT_INT8, 2, {2, 2}, 7, 0, 12, 4, ones}};

static void print_counts(void)
{
    fprintf(stderr,
            "%lu tried, %lu accepted, %lu refused, %lu damaged, %lu untrue\n",
            tried, accepted, refused, damaged, untrue);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, most);
}

/* What the server said: anything but a frame of ours is a finding, and on a
 * line with a key an answer without its tag. */
static void read_answers(void)
{
    struct crt_frame frame;

    while ((frame = line_next()).kind != 0) {
        if (is_keyed && frame.kind == CRT_FRAME_REPLY && !is_tagged(&frame))
            abort();
        if (frame.kind == CRT_FRAME_REPLY && frame.bytes >= 4) {
            accepted += (int32_t)crt_get32(frame.data) >= 0;
            refused += (int32_t)crt_get32(frame.data) < 0;
        } else if (frame.kind != CRT_FRAME_WELCOME &&
                   frame.kind != CRT_FRAME_WORKING &&
                   frame.kind != CRT_FRAME_LOST &&
                   frame.kind != CRT_FRAME_REPLY) {
            abort();
        }
    }
}

static uint32_t session;
static uint32_t sequence;

static void begin(uint32_t nonce)
{
    session = is_keyed ? keyed_hello(nonce).session : line_hello(nonce);
    sequence = 0;
}

static void call(const uint8_t *data, uint32_t bytes)
{
    if (is_keyed) {
        keyed_call(session, ++sequence, data, bytes, -1);
    } else {
        line_clear();
        line_frame(CRT_FRAME_CALL, session, ++sequence, data, bytes);
    }
    if (crt_rpc_poll(&server) != 1)
        abort();
    read_answers();
}

/* A call whose tag is wrong in a bit: nothing is done or said. */
static void call_untrue(const uint8_t *data, uint32_t bytes, uint32_t bit)
{
    const struct crt_rpc before = server;

    untrue++;
    keyed_call(session, sequence + 1, data, bytes, (int)(bit % (8u * TAG)));
    if (crt_rpc_poll(&server) != 1 || line_next().kind != 0 ||
        server.sequence != before.sequence ||
        server.session != before.session ||
        memcmp(server.objects, before.objects, sizeof before.objects) != 0)
        abort();
}

/* An instance with weights, an open image and a free buffer. */
static void prepare(void)
{
    static uint8_t image[IMAGE_BYTES];
    uint8_t data[LINE_MOST];
    uint32_t words[4] = {CRT_RPC_CREATE, 0, 0, 0};
    uint32_t at;

    call(data, line_data(data, words, 1, NULL, 0));
    words[0] = CRT_RPC_ALLOCATE;
    words[1] = 64 + IMAGE_BYTES;
    call(data, line_data(data, words, 2, NULL, 0));
    call(data, line_data(data, words, 2, NULL, 0));
    image_write(image, entries, 2);
    words[0] = CRT_RPC_WRITE;
    words[1] = CRT_RPC_OBJECTS - 2;
    for (at = 0; at < IMAGE_BYTES; at += IMAGE_CHUNK) {
        uint32_t left = IMAGE_BYTES - at;

        words[2] = 64 + at;
        left = left < IMAGE_CHUNK ? left : IMAGE_CHUNK;
        call(data, line_data(data, words, 3, image + at, left));
    }
    words[0] = CRT_RPC_OPEN;
    words[2] = IMAGE_BYTES;
    call(data, line_data(data, words, 3, NULL, 0));
    words[0] = CRT_RPC_LOAD;
    words[1] = CRT_RPC_OBJECTS - 1;
    words[2] = CRT_RPC_OBJECTS - 2;
    call(data, line_data(data, words, 3, NULL, 0));
}

/* Calls: a byte for its length, a byte for each word, then data. A word above
 * 250 is one of the largest numbers; a run is of few times. A length above 200
 * says that another hello comes before, on a line with a key one above 160
 * that the tag is wrong. */
static void calls(const uint8_t *data, size_t size)
{
    size_t i = 0;

    while (i < size) {
        const uint8_t head = data[i];
        size_t length = head % 40u;
        uint32_t words[LINE_WORDS];
        uint8_t all[LINE_MOST];
        uint32_t count = 0;
        uint32_t bytes;

        words[0] = 0;
        for (i++; length > 0 && i < size && count < 5; i++, length--) {
            words[count] = data[i];
            if (data[i] > 250)
                words[count] -= 256;
            count++;
        }
        if (count > 2 && words[0] == CRT_RPC_RUN)
            words[2] %= 4u;
        if (length > size - i)
            length = size - i;
        bytes = line_data(all, words, count, data + i, (uint32_t)length);
        if (head > 200)
            begin(head);
        if (is_keyed && head > 160 && head <= 200)
            call_untrue(all, bytes, head + words[0]);
        else
            call(all, bytes);
        i += length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct crt_rpc_config config = line_config(&affine_model);
    size_t i;

    if (tried++ == 0)
        atexit(print_counts);
    if (size == 0)
        return 0;
    memset(line_memory, 0x55, sizeof line_memory);
    is_keyed = (data[0] & 4u) != 0;
    if (is_keyed)
        config = keyed_config(&affine_model);
    if (crt_rpc_init(&server, &config) != CRT_OK)
        abort();
    begin(1);
    prepare();
    if (server.session != session || server.sequence != sequence)
        abort(); /* with a key: its tags were taken for true */
    line_clear();
    if (data[0] % 4u != 0) {
        calls(data + 1, size - 1);
    } else {
        for (i = 1; i < size; i++)
            line_give(NULL, data[i]);
        crt_rpc_poll(&server);
        damaged += server.in.dropped;
        read_answers();
    }
    return 0;
}
