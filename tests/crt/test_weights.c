/* Every call of crt/weights.h, right and wrong, on the model of affine.h and
 * variants of it. Prints each failed line; exit code 1 if there was one. */
#include "affine.h"
#include "crt/weights.h"
#include "expect.h"
#include "image.h"

#define ALIGNED __attribute__((aligned(4)))

static const int8_t b_bytes[4] ALIGNED = {1, 1, 2, 2};
static const int8_t w_bytes[4] ALIGNED = {3, -1, 2, 5};
static const int8_t other_bytes[4] ALIGNED = {9, 9, 9, 9};

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

static void test_load(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    int8_t y[4];

    start();
    EXPECT(affine_run(&one, 1, y) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_missing(&one.g) == &affine_tensors[2]);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_missing(&one.g) == NULL); /* x was set before */
    EXPECT(p->users == 2);
    EXPECT(crt_graph_parameter(&one.g, 0) == memory[0] + 160);
    expect_right(&one);
    EXPECT(crt_params_close(p) == CRT_ERR_IN_USE && p->image == memory[0]);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK); /* again: as before */
    EXPECT(p->users == 2);
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK);
    EXPECT(p->users == 0 && crt_graph_parameter(&one.g, 0) == NULL);
    EXPECT(affine_run(&one, 1, y) == CRT_ERR_UNBOUND);
    EXPECT(crt_params_close(p) == CRT_OK);
    EXPECT(p->image == NULL && p->count == 0);
    EXPECT(crt_params_close(p) == CRT_OK);
    EXPECT(crt_params_close(NULL) == CRT_ERR_NULL);
}

static void test_load_in_pieces(void)
{
    struct crt_params *first = make(0, b_entry, w_entry, 1);
    struct crt_params *second = make(1, w_entry, w_entry, 1);
    struct entry unknown = w_entry;
    int8_t y[4];

    start();
    EXPECT(crt_graph_load_params(&one.g, first) == CRT_OK);
    EXPECT(crt_graph_setup(&one.g) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_missing(&one.g) == &affine_tensors[3]);
    EXPECT(affine_run(&one, 1, y) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_load_params(&one.g, second) == CRT_OK);
    EXPECT(first->users == 1 && second->users == 1);
    EXPECT(crt_graph_setup(&one.g) == CRT_OK);
    expect_right(&one);
    unknown.name = "z"; /* is passed over */
    EXPECT(crt_graph_load_params(&one.g, make(2, b_entry, unknown, 2)) ==
           CRT_OK);
    EXPECT(first->users == 0 && second->users == 1 && images[2].users == 1);
    expect_right(&one);
}

/* The second parameter of an image is wrong: the first must stay as it is. */
/* @req weights.h:CRT_ERR_DTYPE, weights.h:CRT_ERR_SHAPE
 * @req weights.h:CRT_ERR_LAYOUT, weights.h:CRT_ERR_SIZE
 * @req weights.h:CRT_ERR_CODEC, crt_graph_load_params:CRT_ERR_CODEC */
static void test_unfit(void)
{
    struct entry e;
    struct crt_params *good;
    int i;

    for (i = 0; i < 7; i++) {
        static const int errors[] = {
            CRT_ERR_DTYPE,  CRT_ERR_SHAPE, CRT_ERR_SHAPE, CRT_ERR_SHAPE,
            CRT_ERR_LAYOUT, CRT_ERR_SIZE,  CRT_ERR_CODEC};
        e = w_entry;
        e.dtype = i == 0 ? CRT_UINT8 : CRT_INT8;
        e.rank = i == 1 ? 1 : 2;
        e.dims[0] = i == 2 ? 4 : 2;
        e.dims[1] = i == 3 ? 1 : 2;
        e.layout = i == 4 ? 8 : 7;
        e.count = i == 5 ? 3 : 4;
        e.codec = i == 6 ? CRT_CODEC_USER : CRT_CODEC_NONE;
        start();
        good = make(0, b_entry, w_entry, 2);
        EXPECT(crt_graph_load_params(&one.g, good) == CRT_OK);
        EXPECT(crt_graph_load_params(&one.g, make(1, b_entry, e, 2)) ==
               errors[i]);
        EXPECT(good->users == 2 && images[1].users == 0);
        expect_right(&one);
    }
}

/* @req weights.h:CRT_ERR_ALIGN */
static void test_alignment(void)
{
    struct crt_tensor tensors[4];
    struct crt_model model = affine_model;
    struct crt_params *p = make(0, b_entry, w_entry, 2);

    memcpy(tensors, affine_tensors, sizeof tensors);
    tensors[3].align = 64;
    tensors[2].align = 64;
    model.tensors = tensors;
    start();
    EXPECT(affine_init(&one, &model) == CRT_OK);
    EXPECT((uintptr_t)memory[0] % 64 == 0);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_ERR_ALIGN); /* at 160 */
    EXPECT(p->users == 0);
    EXPECT(crt_graph_load_params(&two.g, p) == CRT_OK);
    EXPECT(crt_graph_share_params(&one.g, &two.g, NULL) == CRT_ERR_ALIGN);
}

static void test_bind(void)
{
    static const int8_t in_flash[8] __attribute__((aligned(4))) = {3, -1, 2, 5};
    struct crt_params *p = make(0, b_entry, w_entry, 2);

    start();
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, in_flash, 4) == CRT_OK);
    EXPECT(p->users == 1);
    EXPECT(crt_graph_parameter(&one.g, 1) == in_flash);
    expect_right(&one);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, in_flash, 5) == CRT_ERR_SIZE);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, in_flash + 1, 4) ==
           CRT_ERR_ALIGN);
    EXPECT(crt_graph_bind_parameter(&one.g, 2, in_flash, 4) == CRT_ERR_INDEX);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_setup(&one.g) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, w_bytes, 4) == CRT_OK);
    expect_right(&one);
}

/* @req crt_graph_share_parameter:CRT_ERR_UNBOUND */
static void test_share(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);

    start();
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_OK);
    EXPECT(p->users == 4);
    EXPECT(crt_graph_parameter(&two.g, 1) == crt_graph_parameter(&one.g, 1));
    EXPECT(crt_graph_share_params(&two.g, &two.g, NULL) == CRT_OK);
    EXPECT(p->users == 4);
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK); /* the donor first */
    memset(&one, 0x55, sizeof one);
    EXPECT(p->users == 2 && crt_params_close(p) == CRT_ERR_IN_USE);
    expect_right(&two);
    EXPECT(crt_graph_release_params(&two.g) == CRT_OK);
    EXPECT(crt_params_close(p) == CRT_OK);
}

static void test_share_one(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);

    start();
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_share_parameter(&two.g, 1, &one.g, 1) == CRT_OK);
    EXPECT(p->users == 3);
    EXPECT(crt_graph_missing(&two.g) == &affine_tensors[2]);
    EXPECT(crt_graph_share_parameter(&two.g, 0, &one.g, 1) == CRT_ERR_LAYOUT);
    EXPECT(crt_graph_share_parameter(&two.g, 2, &one.g, 0) == CRT_ERR_INDEX);
    EXPECT(crt_graph_share_parameter(&two.g, 0, &one.g, 2) == CRT_ERR_INDEX);
    EXPECT(crt_graph_bind_parameter(&two.g, 0, b_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK);
    /* bound without an image: shared, and not counted */
    EXPECT(crt_graph_share_parameter(&one.g, 0, &two.g, 0) == CRT_OK);
    EXPECT(crt_graph_share_params(&one.g, &two.g, NULL) == CRT_OK);
    EXPECT(crt_graph_parameter(&one.g, 0) == b_bytes && p->users == 2);
    expect_right(&one);
}

static void test_content(void)
{
    struct entry other = w_entry;
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    struct crt_params *q;

    other.data = other_bytes;
    other.content = 99;
    q = make(1, b_entry, other, 2);
    start();
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_load_params(&two.g, q) == CRT_OK);
    /* what another image names must be what the donor has */
    EXPECT(crt_graph_share_params(&two.g, &one.g, q) == CRT_ERR_CONTENT);
    EXPECT(p->users == 2 && q->users == 2);
    /* what two had of its own is let go */
    EXPECT(crt_graph_share_parameter(&two.g, 1, &one.g, 1) == CRT_OK);
    EXPECT(p->users == 3 && q->users == 1);
    expect_right(&two);
    EXPECT(crt_graph_load_params(&two.g, q) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_OK);
    EXPECT(p->users == 4 && q->users == 0);
    expect_right(&two);
    EXPECT(crt_graph_release_params(&two.g) == CRT_OK);
    other.content = w_entry.content + ((uint64_t)1 << 32); /* its high half */
    q = make(1, b_entry, other, 2);
    EXPECT(crt_graph_share_params(&two.g, &one.g, q) == CRT_ERR_CONTENT);
    other.content = w_entry.content + 1; /* its low half */
    q = make(1, b_entry, other, 2);
    EXPECT(crt_graph_share_params(&two.g, &one.g, q) == CRT_ERR_CONTENT);
    other.content = 0; /* not known */
    q = make(1, b_entry, other, 2);
    EXPECT(crt_graph_share_params(&two.g, &one.g, q) == CRT_OK);
    expect_right(&two);
}

static void test_share_by_names(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    struct crt_params *names = make(1, w_entry, w_entry, 1);

    start();
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, names) == CRT_OK);
    EXPECT(p->users == 3 && names->users == 0);
    EXPECT(crt_graph_parameter(&two.g, 0) == NULL);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, w_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, names) == CRT_OK);
    EXPECT(crt_graph_parameter(&two.g, 1) == w_bytes);
}

/* Another model, of the same parameters in another order, with one more. */
/* @req weights.h:CRT_ERR_NAME */
static void test_share_with_another_model(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    struct crt_tensor tensors[4];
    uint32_t layouts[2] = {7, 0};
    struct crt_model other = affine_model;

    memcpy(tensors, affine_tensors, sizeof tensors);
    tensors[2] = affine_tensors[3];
    tensors[3] = affine_tensors[2];
    other.tensors = tensors;
    other.layouts = layouts;
    start();
    EXPECT(affine_init(&two, &other) == CRT_OK);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_OK);
    EXPECT(crt_graph_parameter(&two.g, 0) == crt_graph_parameter(&one.g, 1));
    tensors[3].name = "bias";
    EXPECT(affine_init(&two, &other) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_ERR_NAME);
    EXPECT(crt_graph_parameter(&two.g, 0) == NULL);
    EXPECT(crt_graph_share_params(&two.g, &one.g, p) == CRT_OK);
    EXPECT(crt_graph_missing(&two.g) == &tensors[3]);
    tensors[3].rank = 1;
    EXPECT(crt_graph_share_parameter(&two.g, 1, &one.g, 0) == CRT_ERR_SHAPE);
    tensors[3].rank = 2;
    tensors[3].dtype = CRT_UINT8;
    EXPECT(crt_graph_share_parameter(&two.g, 1, &one.g, 0) == CRT_ERR_DTYPE);
}

/* Built with ids: names are numbers, in the image too. */
static void test_ids(void)
{
    struct entry b = b_entry;
    struct entry w = w_entry;
    struct crt_params *p;
    struct crt_tensor tensors[4];
    struct crt_model model = affine_model;
    int i;

    b.name = "0";
    w.name = "1";
    p = make(0, b, w, 2);
    memcpy(tensors, affine_tensors, sizeof tensors);
    for (i = 0; i < 4; i++)
        tensors[i].name = NULL;
    model.tensors = tensors;
    start();
    EXPECT(affine_init(&one, &model) == CRT_OK);
    EXPECT(crt_graph_find_parameter(&one.g, "w") == CRT_ERR_NAME);
    EXPECT(crt_graph_find_input(&one.g, "x") == CRT_ERR_NAME);
    EXPECT(crt_graph_load_params(&one.g, make(1, b_entry, w_entry, 2)) ==
           CRT_ERR_NAME);
    EXPECT(images[1].users == 0);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(p->users == 2);
    expect_right(&one);
    EXPECT(affine_init(&two, &model) == CRT_OK); /* one model: by index */
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_OK);
    EXPECT(p->users == 4);
    expect_right(&two);
    EXPECT(affine_init(&two, &affine_model) == CRT_OK);
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_ERR_NAME);
    EXPECT(crt_graph_share_parameter(&two.g, 1, &one.g, 1) == CRT_OK);
    EXPECT(affine_init(&one, &model) == CRT_OK);
    EXPECT(crt_graph_share_params(&one.g, &two.g, NULL) == CRT_ERR_NAME);
}

/* Numbers of two digits. */
static void test_many_ids(void)
{
    static void *base[CRT_BASE_COUNT(1, 1, 1, 11, 1)];
    static uint32_t layouts[11];
    struct crt_tensor tensors[13];
    struct crt_model model = affine_model;
    struct entry w = w_entry;
    struct crt_region region;
    int i;

    for (i = 0; i < 13; i++) {
        tensors[i] = affine_tensors[i < 2 ? i : 3];
        tensors[i].name = NULL;
    }
    layouts[10] = 7;
    model.tensors = tensors;
    model.layouts = layouts;
    model.parameter_count = 11;
    w.name = "10";
    region.ptr = one.arena;
    region.bytes = AFFINE_BYTES;
    EXPECT(crt_graph_init(&one.g, &model, base, one.fresh, &region, 1) ==
           CRT_OK);
    EXPECT(crt_graph_load_params(&one.g, make(0, w, w, 1)) == CRT_OK);
    EXPECT(images[0].users == 1);
    EXPECT(crt_graph_parameter(&one.g, 10) == memory[0] + 112);
}

/* A parameter with a home of its own: copied there. */
static void test_home(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    struct crt_tensor tensors[4];
    struct crt_model model = affine_model;

    memcpy(tensors, affine_tensors, sizeof tensors);
    tensors[3].flags = 0;
    tensors[3].at = 40;
    model.tensors = tensors;
    start();
    EXPECT(affine_init(&one, &model) == CRT_OK);
    EXPECT(crt_graph_setup(&one.g) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    EXPECT(crt_graph_parameter(&one.g, 1) == one.arena + 40);
    expect_right(&one);
    /* a sharer does not read the donor's home, which may go */
    EXPECT(crt_graph_share_params(&two.g, &one.g, p) == CRT_OK);
    EXPECT(crt_graph_parameter(&two.g, 1) == memory[0] + 208);
    EXPECT(crt_graph_release_params(&one.g) == CRT_OK);
    memset(one.arena, 0x55, sizeof one.arena);
    expect_right(&two);
    EXPECT(crt_graph_share_params(&one.g, &two.g, p) == CRT_OK);
    EXPECT(crt_graph_parameter(&one.g, 1) == one.arena + 40 && p->users == 4);
    expect_right(&one);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, one.arena + 40, 4) == CRT_OK);
    EXPECT(p->users == 3); /* is there already */
    expect_right(&one);
    EXPECT(crt_graph_share_parameter(&one.g, 1, &one.g, 1) == CRT_OK);
    expect_right(&one);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_parameter(&one.g, 1) == NULL);
}

/* An image that was closed under an instance (its user's fault): the hash is
 * not known then, the bytes are still those that were bound. */
static void test_source_without_the_name(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);

    start();
    EXPECT(crt_graph_load_params(&one.g, p) == CRT_OK);
    p->count = 0;
    EXPECT(crt_graph_share_params(&two.g, &one.g, NULL) == CRT_OK);
    EXPECT(p->users == 4);
    expect_right(&two);
}

/* @req weights.h:CRT_ERR_NULL */
static void test_what_there_is(void)
{
    struct crt_params *p = make(0, b_entry, w_entry, 2);
    struct crt_params nothing; /* was never opened, so no name is in it */
    struct crt_graph never;

    memset(&never, 0, sizeof never);
    memset(&nothing, 0, sizeof nothing);
    start();
    EXPECT(crt_graph_parameter_count(&one.g) == 2);
    EXPECT(crt_graph_find_parameter(&one.g, "w") == 1);
    EXPECT(crt_graph_find_parameter(&one.g, "x") == CRT_ERR_NAME);
    EXPECT(crt_graph_parameter_info(&one.g, 1) == &affine_tensors[3]);
    EXPECT(crt_graph_parameter_info(&one.g, 2) == NULL);
    EXPECT(crt_graph_parameter(&one.g, 2) == NULL);
    EXPECT(crt_graph_find_parameter(&one.g, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_load_params(&one.g, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_load_params(&one.g, &nothing) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_params(&one.g, &two.g, &nothing) == CRT_ERR_NULL);
    EXPECT(crt_graph_parameter_count(&never) == CRT_ERR_NULL);
    EXPECT(crt_graph_find_parameter(&never, "w") == CRT_ERR_NULL);
    EXPECT(crt_graph_parameter_info(&never, 0) == NULL);
    EXPECT(crt_graph_load_params(&never, p) == CRT_ERR_NULL);
    EXPECT(crt_graph_bind_parameter(&never, 0, w_bytes, 4) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_params(&never, &one.g, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_params(&one.g, &never, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_parameter(&never, 0, &one.g, 0) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_parameter(&one.g, 0, &never, 0) == CRT_ERR_NULL);
    EXPECT(crt_graph_release_params(&never) == CRT_ERR_NULL);
}

/* A run under way ends when a parameter changes. */
static void test_in_the_middle_of_a_run(void)
{
    static const struct crt_stage stages[] = {{0, 1, 0, 0}, {0, 1, 0, 0}};
    struct crt_model model = affine_model;
    void *pointers[6];

    model.stages = stages;
    model.stage_count = 2;
    start();
    EXPECT(affine_init(&one, &model) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&one.g, 0, b_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, w_bytes, 4) == CRT_OK);
    expect_right(&one);
    EXPECT(crt_graph_run_stage(&one.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, w_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run_stage(&one.g, pointers, 1) == CRT_ERR_STAGE);
}

int main(void)
{
    test_load();
    test_load_in_pieces();
    test_unfit();
    test_alignment();
    test_bind();
    test_share();
    test_share_one();
    test_content();
    test_share_by_names();
    test_share_with_another_model();
    test_ids();
    test_many_ids();
    test_home();
    test_source_without_the_name();
    test_what_there_is();
    test_in_the_middle_of_a_run();
    return failures != 0;
}
