/* Images that are another model's, opened anew, or where runs write: on the
 * model of affine.h. Prints each failed line; exit code 1 if there was one. */
#include "affine.h"
#include "crt/port.h"
#include "crt/weights.h"
#include "expect.h"
#include "image.h"

#define ALIGNED __attribute__((aligned(4)))

static const int8_t b_bytes[4] ALIGNED = {1, 1, 2, 2};
static const int8_t w_bytes[4] ALIGNED = {3, -1, 2, 5};

static const struct entry b_entry = {"b", CRT_INT8, 2, {2, 2}, 0,
                                     0,   11,       4, b_bytes};
static const struct entry w_entry = {"w", CRT_INT8, 2, {2, 2}, 7,
                                     0,   12,       4, w_bytes};

static uint8_t memory[3][IMAGE_BYTES] __attribute__((aligned(64)));
static struct crt_params images[3];
static struct affine one;
static struct affine two;

/* Writes image `n` of these two, or of the first alone. */
static struct crt_params *make(int n, struct entry b, struct entry w,
                               uint32_t count)
{
    struct entry both[2];

    both[0] = b;
    both[1] = w;
    image_write(memory[n], both, count);
    EXPECT(crt_params_verify(&images[n], memory[n], IMAGE_BYTES) == CRT_OK);
    return &images[n];
}

static void start(void)
{
    memset(&one, 0x55, sizeof one);
    memset(&two, 0x55, sizeof two);
    EXPECT(affine_init(&one, &affine_model) == CRT_OK);
    EXPECT(affine_init(&two, &affine_model) == CRT_OK);
}

static void expect_right(struct affine *a)
{
    int8_t y[4] = {0, 0, 0, 0};
    int i;

    EXPECT(affine_run(a, 3, y) == CRT_OK);
    for (i = 0; i < 4; i++)
        EXPECT(y[i] == 3 * (i + 1) * w_bytes[i] + 2 * b_bytes[i]);
}

/* An image of which the model knows nothing: nothing happens, and it says so.
 */
/* @req crt_graph_load_params:CRT_ERR_NAME
 * @req crt_graph_share_params:CRT_ERR_NAME */
static void test_another_models_image(void)
{
    struct entry strange[2] = {b_entry, w_entry};
    struct crt_params *good;

    strange[0].name = "kernel";
    strange[1].name = "scale";
    start();
    good = make(0, b_entry, w_entry, 2);
    EXPECT(crt_graph_load_params(&one.g, good) == CRT_OK);
    EXPECT(crt_graph_load_params(&one.g, make(1, strange[0], strange[1], 2)) ==
           CRT_ERR_NAME);
    EXPECT(crt_graph_load_params(&one.g, make(1, b_entry, w_entry, 0)) ==
           CRT_ERR_NAME);
    EXPECT(crt_graph_share_params(&two.g, &one.g,
                                  make(1, strange[0], strange[1], 2)) ==
           CRT_ERR_NAME);
    EXPECT(good->users == 2 && images[1].users == 0);
    expect_right(&one);
    EXPECT(crt_graph_load_params(&one.g, make(1, strange[0], w_entry, 2)) ==
           CRT_OK);
    EXPECT(good->users == 1 && images[1].users == 1);
}

/* An instance is initialised anew and its image opened anew, while it is in
 * use: its count begins anew, too. */
/* @req crt_graph_init:Owner */
static void test_begun_anew(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    int i;

    start();
    for (i = 0; i < 3; i++) {
        EXPECT(affine_init(&one, &affine_model) == CRT_OK);
        p = make(0, b_entry, w_entry, 2);
        EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
        EXPECT(p->users == 2);
        expect_right(&one);
    }
    p = make(0, b_entry, w_entry, 2); /* what was bound by the old count */
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK);
    EXPECT(p->users == 0 && crt_params_close(p) == CRT_OK);
}

/* An instance is initialised anew, its image is not: what was bound counts
 * until it is opened anew; init has nothing to trust but its arguments. */
/* @req crt_graph_init:Owner */
static void test_begun_without_release(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);

    start();
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK && p->users == 2);
    EXPECT(affine_init(&one, &affine_model) == CRT_OK);
    EXPECT(crt_graph_parameter(&one.g, 0) == NULL && p->users == 2);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK && p->users == 4);
    expect_right(&one);
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK && p->users == 2);
    EXPECT(crt_params_close(p) == CRT_ERR_IN_USE);
    p = make(0, b_entry, w_entry, 2); /* the way out */
    EXPECT(p->users == 0 && crt_params_close(p) == CRT_OK);
    EXPECT(crt_graph_load_params(&one.g, make(0, b_entry, w_entry, 2)) ==
           CRT_OK);
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK); /* then init: right */
    EXPECT(affine_init(&one, &affine_model) == CRT_OK && p->users == 0);
}

#ifndef CRT_NO_OVERLAP
/* Weights in memory that runs write over. */
/* @req weights.h:CRT_ERR_OVERLAP, crt_graph_bind_parameter:CRT_ERR_OVERLAP */
static void test_overlap(void)
{
    struct crt_region region = {memory[0], AFFINE_BYTES};

    start();
    EXPECT(crt_graph_load_params(&two.g, make(0, b_entry, w_entry, 2)) ==
           CRT_OK);
    region.ptr = (uint8_t *)crt_unconst(crt_graph_parameter(&two.g, 1)) - 32;
    EXPECT(crt_graph_init(&one.g, &affine_model, one.base, one.fresh, &region,
                          1) == CRT_OK);
    EXPECT(crt_graph_load_params(&one.g, &images[0]) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_share_params(&one.g, &two.g, NULL) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_share_parameter(&one.g, 1, &two.g, 1) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, region.ptr, 4) ==
           CRT_ERR_OVERLAP);
    EXPECT(crt_graph_parameter(&one.g, 1) == NULL && images[0].users == 2);
}
#endif

int main(void)
{
    test_another_models_image();
    test_begun_anew();
    test_begun_without_release();
#ifndef CRT_NO_OVERLAP
    test_overlap();
#endif
    return failures != 0;
}
