/* Fuzz target: the functions of a generated model, net.h, in any order with any
 * bytes: images, saved state, inputs, arrays that are bound. The first three
 * bytes of an input are flags and the length of an image, which follows; then
 * calls. Under ASan and UBSan; prints at exit what became of them. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include "crt/crc.h"
#include "crt/unpack.h"
#include "fuzz.h"
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, MOST_UNPACKED = 1 << 16, SEALED = 1 };

struct bytes {
    const uint8_t *at;
    size_t left;
};

static unsigned long tried, accepted, refused;
static uint8_t arenas[2][NET_ARENA_BYTES] __attribute__((aligned(16)));
static float inputs[NET_X_LEN + 1], outputs[NET_Y_LEN + 1];
static struct net nets[2];
static uint8_t saved[NET_STATE_BYTES];

static void print_counts(void)
{
    fprintf(stderr, "%lu tried, %lu accepted, %lu refused\n", tried, accepted,
            refused);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, most);
}

static void count(int error)
{
    accepted += error == CRT_OK;
    refused += error < CRT_OK;
    if (error > CRT_OK)
        abort();
}

static uint8_t next(struct bytes *b)
{
    if (b->left == 0)
        return 0;
    b->left--;
    return *b->at++;
}

/* The checksum made true, where the size that the image says lets it. */
static void seal(uint8_t *image, size_t bytes)
{
    uint32_t total = 0;
    uint32_t crc;
    int i;

    if (bytes < 40)
        return;
    for (i = 3; i >= 0; i--)
        total = total << 8 | image[12 + i];
    if (total < 40 || total > bytes)
        return;
    crc = crt_crc32(0, image + 8, total - 8);
    for (i = 0; i < 4; i++)
        image[4 + i] = (uint8_t)(crc >> (8 * i));
}

/* What was saved last, with some bytes changed, from a copy of its own. */
static void restore(struct net *m, struct bytes *b)
{
    uint8_t *copy = (uint8_t *)malloc(NET_STATE_BYTES);
    uint8_t changes = next(b);

    if (copy == NULL)
        abort();
    memcpy(copy, saved, NET_STATE_BYTES);
    for (; changes % 8u != 0; changes--)
        copy[next(b) % NET_STATE_BYTES] ^= next(b);
    count(net_restore_state(m, copy));
    free(copy);
}

static void bind_array(struct net *m, struct bytes *b)
{
    int32_t dims[4], strides[4];
    struct crt_array array;
    int i;

    for (i = 0; i < 4; i++) {
        dims[i] = (int8_t)next(b);
        strides[i] = (int8_t)next(b);
    }
    array.data = (uint8_t *)inputs + next(b) % 5u;
    array.dims = dims;
    array.strides = next(b) % 2u == 0 ? NULL : strides;
    array.dtype = next(b) % 16u;
    array.rank = next(b) % 5u;
    count(crt_graph_bind_input_array(&m->graph, next(b), &array));
}

static void call(struct net *m, struct net *other, struct crt_params *params,
                 struct bytes *b)
{
    const uint32_t more = next(b);
    uint8_t some[32] = {0};
    void *pointers[8];

    switch (more % 14u) {
    case 0:
        memcpy(inputs, b->at, b->left < 16 ? b->left : 16);
        count(net_set_x(m, (const float *)(const void *)inputs));
        break;
    case 1:
        count(net_run(m));
        break;
    case 2:
        count(net_reset(m));
        break;
    case 3:
        count(net_save_state(m, saved));
        break;
    case 4:
        restore(m, b);
        break;
    case 5:
        count(net_load_params(m, params));
        break;
    case 6:
        count(net_release_params(m));
        break;
    case 7:
        count(net_share_params(m, other));
        break;
    case 8:
        count(net_bind_x(m, more > 99 ? NULL : inputs + next(b) % 2u));
        break;
    case 9:
        count(net_bind_y(m, more > 99 ? NULL : outputs + next(b) % 2u));
        break;
    case 10:
        count(crt_graph_set_input(&m->graph, next(b), some, next(b) % 32u));
        break;
    case 11:
        bind_array(m, b);
        break;
    case 12:
        count(crt_graph_get_output(&m->graph, next(b), some, next(b) % 32u));
        break;
    default:
        count(crt_graph_run_stage(&m->graph, pointers, next(b)));
    }
}

static void calls(struct crt_params *params, struct bytes *b)
{
    while (b->left > 0) {
        const uint8_t which = next(b) % 2u;

        call(&nets[which], &nets[1 - which], params, b);
    }
}

static void start(void)
{
    int i;

    for (i = 0; i < 2; i++) {
        struct net_memory memory = NET_MEMORY(arenas[i]);

        memset(arenas[i], 0x55, sizeof arenas[i]);
        count(net_init(&nets[i], &memory));
        count(net_save_state(&nets[i], saved));
    }
}

/* Images are on an aligned copy that ends where its memory ends. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct crt_params params;
    const uint8_t flags = next(&b);
    size_t bytes = next(&b);
    void *unpacked = NULL;
    uint32_t wanted = 0;
    void *image;
    int error;

    if (tried++ == 0)
        atexit(print_counts);
    bytes |= (size_t)next(&b) << 8;
    if (bytes > b.left)
        bytes = b.left;
    if (posix_memalign(&image, ALIGN, bytes + (bytes == 0)) != 0)
        abort();
    memcpy(image, b.at, bytes);
    b.at += bytes;
    b.left -= bytes;
    if ((flags & SEALED) != 0)
        seal((uint8_t *)image, bytes);
    start();
    memset(&params, 0, sizeof params);
    error = crt_params_verify(&params, image, bytes);
    count(error);
    if (error == CRT_OK)
        wanted = crt_params_unpacked_bytes(&params);
    if (wanted > 0 && wanted < MOST_UNPACKED) {
        if (posix_memalign(&unpacked, ALIGN, wanted) != 0)
            abort();
        count(crt_params_unpack_all(&params, unpacked, wanted, NULL, NULL));
    }
    calls(&params, &b);
    count(net_release_params(&nets[0]));
    count(net_release_params(&nets[1]));
    if (error == CRT_OK && crt_params_close(&params) != CRT_OK)
        abort();
    free(unpacked);
    free(image);
    return 0;
}
