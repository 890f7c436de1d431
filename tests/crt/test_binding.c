/* Lazy inputs, arrays, storage that instances share, constants that a step
 * unpacks or copies. Prints each failed line; exit code 1 if there was one. */
#include "affine.h"
#include "crt/copy.h"
#include "crt/lz4.h"
#include "crt/weights.h"
#include "expect.h"

#include <string.h>

static const int8_t b_bytes[4] __attribute__((aligned(4))) = {1, 1, 2, 2};
static const int8_t w_bytes[4] __attribute__((aligned(4))) = {3, -1, 2, 5};
static int8_t x_bytes[8] __attribute__((aligned(4))) = {3, 6, 9, 12};
static void *pointers[6];
static struct affine one;
static struct affine two;

static void start(struct affine *a, const struct crt_model *model)
{
    memset(a, 0x55, sizeof *a);
    EXPECT(affine_init(a, model) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&a->g, 0, b_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&a->g, 1, w_bytes, 4) == CRT_OK);
}

static void expect_y(const int8_t *y, int times)
{
    int i;

    for (i = 0; i < 4; i++)
        EXPECT(y[i] == times * (i + 1) * w_bytes[i] + 2 * b_bytes[i]);
}

/* ---- lazy inputs --------------------------------------------------------- */

static void test_lazy(void)
{
    struct crt_tensor tensors[4];
    struct crt_model model = affine_model;
    int8_t y[4];

    memcpy(tensors, affine_tensors, sizeof tensors);
    tensors[0].flags = CRT_TENSOR_LAZY;
    tensors[1].at = 0; /* nothing is kept free for x */
    model.tensors = tensors;
    start(&one, &model);
    EXPECT(crt_graph_missing(&one.g) == &tensors[0]);
    EXPECT(crt_graph_setup(&one.g) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_input(&one.g, 0) == NULL);
    EXPECT(crt_graph_set_input(&one.g, 0, x_bytes, 4) == CRT_ERR_LAZY);
    EXPECT(crt_graph_bind_input(&one.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_missing(&one.g) == NULL);
    EXPECT(crt_graph_setup(&one.g) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_OK);
    EXPECT(crt_graph_get_output(&one.g, 0, y, 4) == CRT_OK);
    expect_y(y, 3);
    EXPECT(crt_graph_set_input(&one.g, 0, x_bytes, 4) == CRT_ERR_LAZY);
    EXPECT(crt_graph_input(&one.g, 0) == x_bytes);
    EXPECT(crt_graph_reset(&one.g) == CRT_OK); /* bindings are kept */
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_OK);
    EXPECT(crt_graph_bind_input(&one.g, 0, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_bind_input(&one.g, 0, x_bytes + 4, 4) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_OK);
    EXPECT(memcmp(crt_graph_output(&one.g, 0), "\2\2\4\4", 4) == 0);
}

static void test_missing(void)
{
    struct crt_graph never;

    memset(&never, 0, sizeof never);
    EXPECT(crt_graph_missing(&never) == NULL);
    EXPECT(crt_graph_setup(&never) == CRT_ERR_NULL);
    memset(&one, 0x55, sizeof one);
    EXPECT(affine_init(&one, &affine_model) == CRT_OK);
    /* what is not bound goes first, as in a run */
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_missing(&one.g) == &affine_tensors[2]);
    start(&one, &affine_model);
    EXPECT(crt_graph_setup(&one.g) == CRT_OK);
    EXPECT(crt_graph_missing(&one.g) == &affine_tensors[0]);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_INPUT_MISSING);
}

/* No stage: what a graph without a node comes to. */
static void test_nothing_to_do(void)
{
    struct crt_model model = affine_model;

    model.stage_count = 0;
    start(&one, &model);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_set_input(&one.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_OK);
    EXPECT(crt_graph_run_stage(&one.g, pointers, 0) == CRT_ERR_INDEX);
    EXPECT(crt_graph_run_stage(&one.g, NULL, 0) == CRT_ERR_NULL);
}

/* ---- arrays -------------------------------------------------------------- */

static void test_arrays(void)
{
    static const int32_t dims[2] = {2, 2};
    static const int32_t flat[2] = {4, 1};
    static const int32_t row_major[2] = {2, 1};
    static const int32_t turned[2] = {1, 2};
    int8_t out[8] __attribute__((aligned(4)));
    struct crt_array array = {NULL, NULL, NULL, CRT_INT8, 2};
    struct crt_graph never;

    memset(&never, 0, sizeof never);
    start(&one, &affine_model);
    EXPECT(crt_graph_bind_input_array(&one.g, 0, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_NULL);
    EXPECT(crt_array_check(&array, NULL) == CRT_ERR_NULL);
    array.dims = dims;
    EXPECT(crt_array_check(&array, &affine_tensors[0]) == CRT_ERR_NULL);
    array.data = x_bytes;
    EXPECT(crt_array_check(&array, NULL) == CRT_ERR_NULL);
    array.dims = NULL;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_NULL);
    array.dims = dims;
    EXPECT(crt_graph_bind_input_array(&one.g, 1, &array) == CRT_ERR_INDEX);
    EXPECT(crt_graph_bind_output_array(&one.g, 1, &array) == CRT_ERR_INDEX);
    EXPECT(crt_graph_bind_input_array(&never, 0, &array) == CRT_ERR_NULL);
    EXPECT(crt_graph_bind_output_array(&never, 0, &array) == CRT_ERR_NULL);
    array.dtype = CRT_UINT8;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_DTYPE);
    EXPECT(crt_graph_bind_output_array(&one.g, 0, &array) == CRT_ERR_DTYPE);
    EXPECT(crt_array_check(&array, &affine_tensors[0]) == CRT_ERR_DTYPE);
    array.dtype = CRT_INT8;
    array.rank = 1;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_SHAPE);
    EXPECT(crt_graph_bind_output_array(&one.g, 0, &array) == CRT_ERR_SHAPE);
    EXPECT(crt_array_check(&array, &affine_tensors[0]) == CRT_ERR_SHAPE);
    array.rank = 2;
    array.dims = flat;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_SHAPE);
    array.dims = dims;
    array.strides = turned;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_STRIDES);
    EXPECT(crt_graph_bind_output_array(&one.g, 0, &array) == CRT_ERR_STRIDES);
    array.strides = row_major;
    array.data = x_bytes + 1;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_ERR_ALIGN);
    EXPECT(crt_array_check(&array, &affine_tensors[0]) == CRT_ERR_ALIGN);
    array.data = x_bytes;
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_OK);
    array.strides = NULL; /* says the same */
    EXPECT(crt_graph_bind_input_array(&one.g, 0, &array) == CRT_OK);
    array.data = out + 1;
    EXPECT(crt_graph_bind_output_array(&one.g, 0, &array) == CRT_ERR_ALIGN);
    array.data = out;
    EXPECT(crt_graph_bind_output_array(&one.g, 0, &array) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_OK);
    EXPECT(crt_graph_output(&one.g, 0) == out);
    expect_y(out, 3);
}

/* The stride of an axis of one does not matter; one of rank 0 has none. */
static void test_strides(void)
{
    static const int32_t dims[2] = {1, 2};
    static const int32_t any[2] = {99, 1};
    static const int32_t gaps[2] = {99, 2};
    struct crt_tensor tensor = affine_tensors[0];
    struct crt_array array = {x_bytes, dims, any, CRT_INT8, 2};

    tensor.dims = dims;
    EXPECT(crt_array_check(&array, &tensor) == CRT_OK);
    array.strides = gaps;
    EXPECT(crt_array_check(&array, &tensor) == CRT_ERR_STRIDES);
    array.rank = 0;
    array.dims = NULL;
    tensor.rank = 0;
    EXPECT(crt_array_check(&array, &tensor) == CRT_OK);
}

/* 2^31 elements and more: the strides of such an array are not an overflow. */
static void test_large_strides(void)
{
    static const int32_t dims[3] = {3, 1 << 30, 1};
    static const int32_t strides[3] = {1 << 30, 1, 1};
    struct crt_tensor tensor = affine_tensors[0];
    struct crt_array array = {x_bytes, dims, strides, CRT_INT8, 3};

    tensor.dims = dims;
    tensor.rank = 3;
    EXPECT(crt_array_check(&array, &tensor) == CRT_OK);
}

/* ---- shared storage ------------------------------------------------------ */

/* As `one`, in the memory of `one`. */
static void start_in_one(struct affine *a, const struct crt_model *model)
{
    struct crt_region region;

    region.ptr = one.arena;
    region.bytes = AFFINE_BYTES;
    memset(a, 0x55, sizeof *a);
    EXPECT(crt_graph_init(&a->g, model, a->base, a->fresh, &region, 1) ==
           CRT_OK);
    EXPECT(crt_graph_bind_parameter(&a->g, 0, b_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&a->g, 1, w_bytes, 4) == CRT_OK);
}

static void test_turns(void)
{
    struct crt_turn turn;
    int8_t y[4];

    memset(&turn, 0x55, sizeof turn);
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    start(&one, &affine_model);
    start_in_one(&two, &affine_model);
    EXPECT(crt_graph_share_storage(NULL, &turn) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_storage(&one.g, &turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    expect_y(y, 3);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    /* one has lost what it had */
    EXPECT(crt_graph_get_output(&one.g, 0, y, 4) == CRT_ERR_NO_OUTPUT);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_missing(&one.g) == &affine_model.tensors[0]);
    EXPECT(crt_graph_run_stage(&one.g, pointers, 0) == CRT_ERR_INPUT_MISSING);
    /* and takes nothing by runs that are refused */
    EXPECT(turn.owner == &two.g && turn.running == 0);
    EXPECT(crt_graph_run(&two.g, pointers) == CRT_OK);
    EXPECT(crt_graph_get_output(&two.g, 0, y, 4) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_get_output(&two.g, 0, y, 4) == CRT_OK);
    EXPECT(affine_run(&two, 5, y) == CRT_OK);
    expect_y(y, 5);
    EXPECT(crt_graph_input(&one.g, 0) == one.arena);
    EXPECT(crt_graph_get_output(&two.g, 0, y, 4) == CRT_ERR_NO_OUTPUT);
    memcpy(crt_graph_input(&one.g, 0), x_bytes, 4);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_OK);
    EXPECT(crt_graph_get_output(&one.g, 0, y, 4) == CRT_OK);
    expect_y(y, 3);
    /* what is bound is nobody's to take */
    EXPECT(crt_graph_bind_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(affine_run(&one, 1, y) == CRT_OK);
    EXPECT(crt_graph_run(&two.g, pointers) == CRT_OK);
    EXPECT(crt_graph_get_output(&two.g, 0, y, 4) == CRT_OK);
    expect_y(y, 3);
    EXPECT(crt_graph_share_storage(&two.g, NULL) == CRT_OK);
    EXPECT(crt_graph_run(&two.g, pointers) == CRT_OK);
}

#ifndef CRT_NO_OVERLAP
/* A model that shares memory with a larger one: what the larger one has there
 * cannot be bound, though it lies behind all that the small one has. */
/* @req crt_graph_share_storage:CRT_ERR_REGION
 * @req crt_graph_share_storage:CRT_ERR_OVERLAP */
static void test_places_of_turns(void)
{
    static const uint32_t more[] = {2 * AFFINE_BYTES};
    static int8_t room[6][2 * AFFINE_BYTES] __attribute__((aligned(16)));
    struct crt_region region = {room[1], 2 * AFFINE_BYTES};
    struct crt_tensor tensors[sizeof affine_tensors / sizeof *affine_tensors];
    struct crt_model small = affine_model;
    struct crt_model large = affine_model;
    struct crt_turn turn;
    uint32_t i;

    memcpy(tensors, affine_tensors, sizeof tensors);
    tensors[0].align = 1;
    small.tensors = tensors;
    large.region_bytes = more;
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    EXPECT(crt_graph_init(&one.g, &large, one.base, one.fresh, &region, 1) ==
           CRT_OK);
    EXPECT(crt_graph_init(&two.g, &small, two.base, two.fresh, &region, 1) ==
           CRT_OK);
    EXPECT(crt_graph_bind_input(&two.g, 0, room[1] + 64, 4) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&one.g, &turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_ERR_OVERLAP);
    EXPECT(two.g.turn == &turn);
    EXPECT(crt_graph_bind_input(&two.g, 0, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_OK);
    EXPECT(crt_graph_bind_input(&two.g, 0, room[1] + 64, 4) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_output(&two.g, 0, room[1] + 92, 4) ==
           CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_input(&two.g, 0, &room[0][94], 4) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_input(&two.g, 0, &room[0][92], 4) == CRT_OK);
    EXPECT(crt_graph_bind_input(&two.g, 0, room[2], 4) == CRT_OK);
    EXPECT(crt_graph_bind_output(&two.g, 0, room[1] + 16, 4) == CRT_OK);
    /* others take what an input keeps */
    EXPECT(crt_graph_bind_input(&one.g, 0, room[1], 4) == CRT_OK); /* home */
    EXPECT(crt_graph_bind_parameter(&one.g, 0, room[1], 4) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_share_storage(&two.g, NULL) == CRT_OK);
    EXPECT(crt_graph_bind_input(&two.g, 0, room[1] + 64, 4) == CRT_OK);
    /* more pieces than a turn can note */
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    for (i = 0; i < 5u; i++) {
        region.ptr = room[i + 1u];
        EXPECT(crt_graph_init(&one.g, &large, one.base, one.fresh, &region,
                              1) == CRT_OK);
        EXPECT(crt_graph_share_storage(&one.g, &turn) ==
               (i < (uint32_t)CRT_TURN_REGIONS ? CRT_OK : CRT_ERR_REGION));
    }
    EXPECT(one.g.turn == NULL);
}
#endif

/* @req crt_graph_share_storage:CRT_ERR_BUSY */
static void test_turn_in_the_middle_of_a_run(void)
{
    static const struct crt_stage stages[] = {{0, 1, 0, 0}, {0, 1, 0, 0}};
    struct crt_model model = affine_model;
    struct crt_turn turn;
    int8_t y[4];

    memset(&turn, 0x55, sizeof turn);
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    model.stages = stages;
    model.stage_count = 2;
    start(&one, &affine_model);
    start_in_one(&two, &model);
    EXPECT(crt_graph_share_storage(&one.g, &turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_set_input(&one.g, 0, x_bytes, 4) == CRT_ERR_BUSY);
    EXPECT(crt_graph_input(&one.g, 0) == NULL);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_BUSY);
    EXPECT(crt_graph_run_stage(&one.g, pointers, 0) == CRT_ERR_BUSY);
    EXPECT(crt_graph_get_output(&one.g, 0, y, 4) == CRT_ERR_BUSY);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 1) == CRT_OK);
    EXPECT(crt_graph_get_output(&two.g, 0, y, 4) == CRT_OK);
    expect_y(y, 3);
    /* a run that is given up does not keep the storage */
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_reset(&two.g) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, NULL) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    expect_y(y, 3);
    /* a reset in the middle of a run, of a device whose RAM stays as it is */
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    start(&one, &affine_model);
    start_in_one(&two, &model);
    EXPECT(crt_graph_share_storage(&one.g, &turn) == CRT_OK);
    EXPECT(crt_graph_set_input(&one.g, 0, x_bytes, 4) == CRT_ERR_BUSY);
    EXPECT(crt_turn_init(NULL) == CRT_ERR_NULL);
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    expect_y(y, 3);
}

/* What another thread would do: ends the run that is under way, the third time
 * that it is waited for. */
struct waiting {
    struct crt_graph *runs;
    int waits;
    int patience;
    int ends;
};

static int wait_a_little(struct crt_turn *turn, int is_taken)
{
    struct waiting *w = (struct waiting *)turn->context;

    if (!is_taken) {
        w->ends++;
        return 1;
    }
    if (++w->waits == 3)
        EXPECT(crt_graph_run_stage(w->runs, pointers, 1) == CRT_OK);
    return w->waits > w->patience;
}

static void test_waiting_for_a_turn(void)
{
    static const struct crt_stage stages[] = {{0, 1, 0, 0}, {0, 1, 0, 0}};
    struct crt_model model = affine_model;
    struct waiting waiting = {NULL, 0, 9, 0};
    struct crt_turn turn;
    int8_t y[4];

    memset(&turn, 0x55, sizeof turn);
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    model.stages = stages;
    model.stage_count = 2;
    start(&one, &affine_model);
    start_in_one(&two, &model);
    waiting.runs = &two.g;
    turn.wait = wait_a_little;
    turn.context = &waiting;
    EXPECT(crt_graph_share_storage(&one.g, &turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&two.g, &turn) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(waiting.waits == 0 && waiting.ends == 1);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(waiting.ends == 1);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    expect_y(y, 3);
    EXPECT(waiting.waits == 3 && waiting.ends == 5);
    /* one that does not wait for ever */
    EXPECT(crt_graph_set_input(&two.g, 0, x_bytes, 4) == CRT_OK);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_run(&one.g, pointers) == CRT_ERR_BUSY);
    EXPECT(waiting.waits == 10);
    EXPECT(crt_graph_run_stage(&two.g, pointers, 1) == CRT_OK);
    EXPECT(crt_graph_get_output(&two.g, 0, y, 4) == CRT_OK);
    expect_y(y, 3);
}

/* ---- constants that are unpacked ----------------------------------------- */

/* w as an LZ4 block of literals */
static const uint8_t packed[5] = {0x40, 3, 0xff, 2, 5};
static const uint8_t damaged[5] = {0x50, 3, 0xff, 2, 5};

/* @req crt_graph_run:CRT_ERR_UNPACK */
static void test_unpack(void)
{
    static const int32_t unpack_args[] = {CRT_TASK_UNPACK, 5, 4};
    const void *constants[1] = {packed};
    struct crt_operand unpacked = {36, 0, 0};
    struct crt_operand operands[5];
    struct crt_step steps[2];
    static const struct crt_stage stages[] = {{0, 2, 0, 0}};
    struct crt_model model = affine_model;
    int8_t y[4];

    memcpy(operands, affine_operands, sizeof operands);
    operands[2] = unpacked;
    memset(steps, 0, sizeof steps);
    steps[0].args = unpack_args;
    steps[0].constants = constants;
    steps[0].operands = &unpacked;
    steps[0].output_count = 1;
    steps[0].constant_count = 1;
    steps[1] = affine_steps[0];
    steps[1].operands = operands;
    model.steps = steps;
    model.step_count = 2;
    model.stages = stages;
    model.unpack = crt_lz4_unpack;
    start(&one, &model);
    EXPECT(crt_graph_bind_parameter(&one.g, 1, b_bytes, 4) == CRT_OK);
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    expect_y(y, 3);
    EXPECT(memcmp(one.arena + 36, w_bytes, 4) == 0);
    constants[0] = damaged;
    EXPECT(affine_run(&one, 3, y) == CRT_ERR_UNPACK);
    EXPECT(one.g.failed_step == 0);
    EXPECT(crt_graph_get_output(&one.g, 0, y, 4) == CRT_ERR_NO_OUTPUT);
    constants[0] = packed;
    EXPECT(affine_run(&one, 3, y) == CRT_OK);
    expect_y(y, 3);
}

/* Weights in flash as they are, copied to faster memory. */
static void test_copy(void)
{
    uint8_t to[5] = {9, 9, 9, 9, 9};

    EXPECT(crt_copy_weights(b_bytes, 4, to, 3) == CRT_ERR_UNPACK);
    EXPECT(crt_copy_weights(b_bytes, 3, to, 4) == CRT_ERR_UNPACK);
    EXPECT(to[0] == 9);
    EXPECT(crt_copy_weights(b_bytes, 4, to, 4) == CRT_OK);
    EXPECT(memcmp(to, b_bytes, 4) == 0 && to[4] == 9);
}

int main(void)
{
    test_lazy();
    test_missing();
    test_nothing_to_do();
    test_arrays();
    test_strides();
    test_large_strides();
    test_turns();
#ifndef CRT_NO_OVERLAP
    test_places_of_turns();
#endif
    test_turn_in_the_middle_of_a_run();
    test_waiting_for_a_turn();
    test_unpack();
    test_copy();
    return failures != 0;
}
