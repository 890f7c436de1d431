/* The calls of crt/calls.h that drive graphs, right and wrong: inputs, runs,
 * outputs, weights. Prints each failed line; exit code 1 if there was one. */
#include "crt/rpc.h"

#ifndef CRT_NO_RPC

#include "client.h"

#include "affine.h"
#include "image.h"
#include "model.h"

static const int8_t b_bytes[4] = {1, 1, 2, 2};
static const int8_t w_bytes[4] = {3, -1, 2, 5};
static const struct entry entries[2] = {
    {"b", CRT_INT8, 2, {2, 2}, 0, 0, 11, 4, b_bytes},
    {"w", CRT_INT8, 2, {2, 2}, 7, 0, 12, 4, w_bytes}};

/* ---- graphs -------------------------------------------------------------- */

static int8_t filled[24];

static uint32_t two(void)
{
    uint32_t g;

    start(&model);
    memset(filled, 1, sizeof filled);
    g = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    EXPECT(g < CRT_RPC_OBJECTS);
    return g;
}

/* @req crt_rpc_do */
static void test_run(void)
{
    uint32_t g = two();
    uint32_t start_at;

    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_get32(answered) == 0xFFFFFFFF && crt_get32(answered + 4) == 0);
    EXPECT(set(g, 0, 0, 0, filled, 20) == CRT_OK);
    EXPECT(set(g, 1, 0, 1, filled, 3) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_ERR_INPUT_MISSING);
    EXPECT(set(g, 0, 20, 1, filled, 4) == CRT_OK);
    EXPECT(call(CRT_RPC_GET, g, 2, 0, 12) == CRT_ERR_NO_OUTPUT);
    EXPECT(call(CRT_RPC_RUN, g, 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_GET, g, 2, 0, 12) == CRT_ERR_NO_OUTPUT);
    start_at = line.now;
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
    EXPECT(crt_get32(answered + 4) == CRT_RPC_NONE);
    EXPECT(crt_get32(answered + 8) == 3 && line.now == start_at + 6);
    EXPECT(crt_get32(answered + 12) == 0);
    EXPECT(call(CRT_RPC_GET, g, 2, 3, 9) == CRT_OK);
    EXPECT((int8_t)answered[0] == 1 + 2 - 1 + 1);
    EXPECT(call(CRT_RPC_GET, g, 2, 4, 9) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_GET, g, 5, 0, 1) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_GET, g, 1, 0, 3) == CRT_OK && answered[2] == 1);
    EXPECT(call(CRT_RPC_RUN, g, 2, 0, 0) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(set(g, 2, 0, 1, filled, 3) == CRT_ERR_INDEX);
    EXPECT(set(g, 1, 1, 1, filled, 3) == CRT_ERR_SIZE);
    EXPECT(set(g, 1, 0, 1, filled, 3) == CRT_OK);
    EXPECT(call(CRT_RPC_RESET, g, 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_ERR_INPUT_MISSING);
    config.ticks = NULL;
    EXPECT(call(CRT_RPC_TICKS, 0, 0, 0, 0) == CRT_OK);
    EXPECT(crt_get32(answered) == 0);
}

/* @req crt_rpc_working */
static void test_what_takes_its_time_says_so(void)
{
    uint32_t g = two();

    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK && working == 0);
    EXPECT(set(g, 1, 0, 1, filled, 3) == CRT_OK && working == 0);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK && working == 1);
    EXPECT(call(CRT_RPC_GET, g, 2, 0, 12) == CRT_OK && working == 0);
    EXPECT(call(CRT_RPC_STAGE, g, 0, 0, 0) != CRT_OK && working == 1);
}

/* @req crt_rpc_do:Errors */
static void test_stages(void)
{
    uint32_t g = two();

    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    EXPECT(set(g, 1, 0, 1, filled, 3) == CRT_OK);
    EXPECT(call(CRT_RPC_SETUP, g, 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_STAGE, g, 1, 0, 0) == CRT_ERR_STAGE);
    EXPECT(call(CRT_RPC_STAGE, g, 0, 0, 0) == CRT_OK);
    EXPECT(crt_get32(answered + 8) == 3);
    EXPECT(call(CRT_RPC_STAGE, g, 1, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_STAGE, g, 2, 0, 0) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_GET, g, 2, 0, 12) == CRT_OK);
}

static void test_watch(void)
{
    uint32_t g = two();
    uint32_t b = (uint32_t)call(CRT_RPC_ALLOCATE, 96, 0, 0, 0);
    uint8_t table[32];
    const uint32_t entries_[8] = {32, COLS, CRT_RPC_NONE, 1,
                                  60, COLS, 90,           COLS};

    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    EXPECT(set(g, 1, 0, 1, filled, 3) == CRT_OK);
    line_data(table, entries_, 8, NULL, 0);
    EXPECT(write(b, 0, table, 32) == CRT_OK);
#ifndef CRT_NO_HOOK
    EXPECT(call(CRT_RPC_WATCH, g, b, 4, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_READ, b, 32, 64, 0) == CRT_OK);
    EXPECT((int8_t)answered[3] == 2 && (int8_t)answered[23] == 1 + 2 - 5);
    EXPECT((int8_t)answered[28] == 1 * 5 + 2 - 1);
    EXPECT(answered[58] == 5 + 2 - 1 && answered[61] == 2);
    EXPECT(answered[63] == 2); /* and the third row is outside */
    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    EXPECT(call(CRT_RPC_WATCH, g, b, 0, 0) == CRT_OK); /* no entry */
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    EXPECT(call(CRT_RPC_WATCH, g, b, 99, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RELEASE, b, 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK); /* nowhere to put it */
    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    b = (uint32_t)call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);
    EXPECT(call(CRT_RPC_WATCH, g, b, 99, 0) == CRT_OK);
    memset(table, 0xFF, sizeof table); /* a row is longer than the buffer */
    EXPECT(write(b, 0, table, 16) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_WATCH, g, CRT_RPC_NONE, 0, 0) == CRT_OK);
#else
    EXPECT(call(CRT_RPC_WATCH, g, b, 4, 0) == CRT_ERR_CALL);
#endif
}

#ifndef CRT_NO_HOOK
/* The other side says how long rows are: never so that memory ends before. */
static void test_watch_of_too_long_rows(void)
{
    const uint8_t before = 0x77;
    uint32_t entries_[2] = {32, 2000};
    uint8_t table[8];
    uint32_t b;
    uint32_t g;

    start(&model);
    b = (uint32_t)call(CRT_RPC_ALLOCATE, 2600, 0, 0, 0);
    g = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    EXPECT(g < CRT_RPC_OBJECTS);
    line_data(table, entries_, 2, NULL, 0);
    EXPECT(write(b, 0, table, 8) == CRT_OK);
    EXPECT(write(b, 32, &before, 1) == CRT_OK);
    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    EXPECT(set(g, 1, 0, 1, filled, 3) == CRT_OK);
    EXPECT(call(CRT_RPC_WATCH, g, b, 1, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_READ, b, 32, 1, 0) == CRT_OK);
    EXPECT(answered[0] == before);
    b = (uint32_t)call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);
    entries_[1] = 24; /* than the buffer, no more */
    line_data(table, entries_, 2, NULL, 0);
    EXPECT(write(b, 0, table, 8) == CRT_OK);
    EXPECT(set(g, 0, 0, 1, filled, 24) == CRT_OK);
    EXPECT(call(CRT_RPC_WATCH, g, b, 1, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
}
#endif

#ifndef CRT_NO_HOOK
/* p: y, twice, x */
static void twice(void *const *p, const int32_t *a)
{
    int32_t i;

    for (i = 0; i < a[0]; i++) {
        ((int8_t *)p[0])[i] = ((const int8_t *)p[2])[i];
        ((int8_t *)p[1])[i] = (int8_t)(2 * ((const int8_t *)p[2])[i]);
    }
}

/* The second output of a step, at 32 in the arena. */
static void test_watch_of_further_outputs(void)
{
    static const struct crt_operand outs[] = {{0, 2, 0}, {32, 0, 0}, {0, 1, 0}};
    static const struct crt_step step = {twice, affine_args, NULL, outs, 1,
                                         1,     2,           1,    0,    0};
    const uint32_t entries_[2] = {16, 4};
    struct crt_model of_two = affine_model;
    uint8_t table[8];
    uint32_t output;
    uint32_t b;
    uint32_t g;

    of_two.steps = &step;
    of_two.parameter_count = 0;
    start(&of_two);
    b = (uint32_t)call(CRT_RPC_ALLOCATE, 32, 0, 0, 0);
    g = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    line_data(table, entries_, 2, NULL, 0);
    EXPECT(write(b, 0, table, 8) == CRT_OK);
    for (output = 0; output < 3; output++) { /* of the third nothing is taken */
        EXPECT(set(g, 0, 0, 1, filled, 4) == CRT_OK);
        EXPECT(call(CRT_RPC_WATCH, g, b, 1u | output << 16, 0) == CRT_OK);
        EXPECT(call(CRT_RPC_RUN, g, 1, 0, 0) == CRT_OK);
        EXPECT(call(CRT_RPC_READ, b, 16, 4, 0) == CRT_OK);
        EXPECT((int8_t)answered[0] ==
               (output == 0 ? 1 : 2) * (int8_t)filled[0]);
        EXPECT((int8_t)answered[3] ==
               (output == 0 ? 1 : 2) * (int8_t)filled[3]);
    }
}
#endif

static uint32_t image(uint32_t count)
{
    static uint8_t bytes[IMAGE_BYTES];
    uint32_t b = (uint32_t)call(CRT_RPC_ALLOCATE, 64 + IMAGE_BYTES, 0, 0, 0);
    uint32_t at;

    image_write(bytes, entries, count);
    for (at = 0; at < IMAGE_BYTES; at += 64)
        EXPECT(write(b, 64 + at, bytes + at, 64) == CRT_OK);
    return b;
}

static void test_weights(void)
{
    static const int8_t x[4] = {1, 2, 3, 4};
    static struct affine here;
    int8_t y[4];
    uint32_t p;
    uint32_t one;
    uint32_t other;

    start(&affine_model);
    p = image(2);
    one = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    other = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    EXPECT(call(CRT_RPC_LOAD, one, p, 0, 0) == CRT_ERR_INDEX); /* not open */
    EXPECT(call(CRT_RPC_OPEN, p, IMAGE_BYTES + 1, 0, 0) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_OPEN, p, 50, 0, 0) == CRT_ERR_FORMAT);
    EXPECT(call(CRT_RPC_OPEN, p, IMAGE_BYTES, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_OPEN, p, IMAGE_BYTES, 0, 0) == CRT_ERR_INDEX);
    EXPECT(write(p, 64, "x", 1) == CRT_ERR_INDEX); /* it is left alone */
    EXPECT(call(CRT_RPC_SETUP, one, 0, 0, 0) == CRT_ERR_UNBOUND);
    EXPECT(crt_get32(answered + 4) == 2);
    EXPECT(call(CRT_RPC_SHARE, other, 0, one, 0) == CRT_ERR_UNBOUND);
    EXPECT(call(CRT_RPC_SHARE, other, 0, p, 0) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_LOAD, one, p, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_SHARE, other, 0, one, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_SHARE, other, 1, one, 1) == CRT_OK);
    EXPECT(call(CRT_RPC_RELEASE, one, 0, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_RELEASE, p, 0, 0, 0) == CRT_ERR_IN_USE);
    EXPECT(set(other, 0, 0, 1, x, 4) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, other, 2, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_GET, other, 1, 0, 4) == CRT_OK);
    EXPECT((int8_t)answered[1] == 2 * -1 + 2 * 1);
    EXPECT((int8_t)answered[3] == 4 * 5 + 2 * 2);
    EXPECT(call(CRT_RPC_UNBIND, other, 0, 0, 0) == CRT_OK);
    EXPECT(affine_init(&here, &affine_model) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, other, 1, 0, 0) == affine_run(&here, 1, y));
    EXPECT(call(CRT_RPC_RELEASE, p, 0, 0, 0) == CRT_OK);
}

static void test_bind(void)
{
    struct crt_model lazy = affine_model;
    struct crt_tensor tensors_[4];
    uint32_t one;
    uint32_t other;

    memcpy(tensors_, affine_tensors, sizeof tensors_);
    lazy.tensors = tensors_;
    tensors_[0].flags = CRT_TENSOR_LAZY;
    start(&lazy);
    one = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    other = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    EXPECT(set(one, 0, 0, 1, filled, 4) == CRT_ERR_LAZY);
    EXPECT(call(CRT_RPC_GET, one, 0, 0, 4) == CRT_ERR_UNBOUND);
    EXPECT(call(CRT_RPC_BIND, one, 0, other, 0) == CRT_ERR_UNBOUND);
    EXPECT(call(CRT_RPC_BIND, one, 0, other, 9) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_BIND, one, 0, 3, 0) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_BIND, one, 9, other, 1) == CRT_ERR_INDEX);
    EXPECT(call(CRT_RPC_BIND, one, 0, other, 1) == CRT_OK);
    EXPECT(call(CRT_RPC_GET, one, 0, 0, 4) == CRT_OK);
    EXPECT(call(CRT_RPC_BIND, one, 0, CRT_RPC_NONE, 1) == CRT_OK);
    EXPECT(call(CRT_RPC_GET, one, 0, 0, 4) == CRT_ERR_UNBOUND);
}

static int doubled(struct crt_graph *g, const struct crt_tensor *input,
                   const void *data)
{
    int8_t *home = (int8_t *)g->base[0] + input->at;
    int i;

    for (i = 0; i < 4; i++)
        home[i] = (int8_t)(2 * ((const int8_t *)data)[i]);
    return CRT_OK;
}

/* Pieces of an input that is converted wait until all of it is there. */
static void test_converted(void)
{
    static const int8_t x[4] = {1, 2, 3, 4};
    struct crt_model converts = affine_model;
    struct crt_tensor tensors_[4];
    uint32_t one;
    uint32_t p;

    memcpy(tensors_, affine_tensors, sizeof tensors_);
    converts.tensors = tensors_;
    converts.convert = doubled;
    tensors_[0].flags = CRT_TENSOR_CONVERTED | CRT_TENSOR_CONSUMED;
    start(&converts);
    p = image(2);
    one = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    EXPECT(call(CRT_RPC_OPEN, p, IMAGE_BYTES, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_LOAD, one, p, 0, 0) == CRT_OK);
    EXPECT(set(one, 0, 0, 0, x, 1) == CRT_OK);
    EXPECT(call(CRT_RPC_RUN, one, 1, 0, 0) == CRT_ERR_INPUT_MISSING);
    EXPECT(set(one, 0, 1, 1, x + 1, 3) == CRT_OK);
    EXPECT(set(one, 0, 2, 1, x, 3) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_GET, one, 0, 0, 4) == CRT_ERR_UNBOUND);
    EXPECT(call(CRT_RPC_RUN, one, 1, 0, 0) == CRT_OK);
    EXPECT(call(CRT_RPC_GET, one, 1, 0, 4) == CRT_OK);
    EXPECT((int8_t)answered[1] == 2 * (2 * -1) + 2 * 1);
    EXPECT((int8_t)answered[3] == 2 * (4 * 5) + 2 * 2);
    EXPECT(call(CRT_RPC_RUN, one, 1, 0, 0) == CRT_ERR_INPUT_CONSUMED);
}

static void test_create(void)
{
    struct crt_model old = model;
    uint32_t made = 1;
    uint32_t first;

    old.abi = CRT_ABI + 1;
    start(&old);
    EXPECT(call(CRT_RPC_CREATE, 0, 0, 0, 0) == CRT_ERR_ABI);
    EXPECT(server.objects[CRT_RPC_OBJECTS - 1].kind == CRT_RPC_FREE);
    start(&model);
    first = (uint32_t)call(CRT_RPC_CREATE, 0, 0, 0, 0);
    EXPECT(first < CRT_RPC_OBJECTS);
    config.memory_bytes = 4 * server.objects[first].bytes;
    while (call(CRT_RPC_CREATE, 0, 0, 0, 0) >= 0)
        made++;
    EXPECT(made == 4);
    EXPECT(call(CRT_RPC_ALLOCATE, 0xffffffffu, 0, 0, 0) == CRT_ERR_MEMORY);
    config.memory_bytes /= 2; /* what lies behind it stays there */
    EXPECT(call(CRT_RPC_CREATE, 0, 0, 0, 0) == CRT_ERR_MEMORY);
    old.abi = CRT_ABI;
    old.device_count = 2; /* its table of devices has a place, too */
    start(&old);
    EXPECT(call(CRT_RPC_CREATE, 0, 0, 0, 0) >= 0);
}

/* A place behind the end is too far, however few bytes are asked for there. */
static void test_places_behind_the_end(void)
{
    uint32_t g = two();
    uint32_t buffer = (uint32_t)call(CRT_RPC_ALLOCATE, 64, 0, 0, 0);
    uint32_t small = (uint32_t)call(CRT_RPC_ALLOCATE, 16, 0, 0, 0);

    EXPECT(buffer < CRT_RPC_OBJECTS && small < CRT_RPC_OBJECTS);
    EXPECT(write(buffer, 65, filled, 0) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_READ, buffer, 65, 0, 0) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_OPEN, small, 0, 0, 0) == CRT_ERR_SIZE);
    EXPECT(set(g, 0, 25, 1, filled, 0) == CRT_ERR_SIZE);
    EXPECT(call(CRT_RPC_GET, g, 0, 25, 0) == CRT_ERR_SIZE);
}

int main(void)
{
    test_run();
    test_what_takes_its_time_says_so();
    test_stages();
    test_watch();
#ifndef CRT_NO_HOOK
    test_watch_of_too_long_rows();
    test_watch_of_further_outputs();
#endif
    test_weights();
    test_bind();
    test_converted();
    test_create();
    test_places_behind_the_end();
    return failures != 0;
}

#else

int main(void)
{
    return 0;
}

#endif
