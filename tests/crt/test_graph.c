/* Every call of crt/graph.h, right and wrong, on the model of model.h. Prints
 * each failed line; exit code 1 if there was one. */
#include "expect.h"
#include "model.h"

#include "crt/push.h"
#include "crt/state.h"
#include "crt/weights.h"

#include <string.h>

static union {
    int8_t bytes[ARENA_BYTES];
    int64_t align[2];
} arena[2] __attribute__((aligned(16)));
static int8_t kept[16] __attribute__((aligned(16)));
static void *base[7];
static uint32_t fresh[CRT_FRESH_WORDS(2)];
static void *pointers[6];
static int8_t a[24];
static int8_t b[COLS] = {1, 2, 3};
static struct crt_graph never; /* all zero: crt_graph_init was not called */

static struct crt_region regions[2] = {{&arena[0], ARENA_BYTES},
                                       {kept, KEPT_BYTES}};

static void start(struct crt_graph *g)
{
    int i;

    memset(arena, 0x55, sizeof arena);
    memset(kept, 0x55, sizeof kept);
    memset(fresh, 0xff, sizeof fresh);
    memset(g, 0x55, sizeof *g);
    for (i = 0; i < 24; i++)
        a[i] = (int8_t)(i * 7 % 11 - 4);
    EXPECT(crt_graph_init(g, &model, base, fresh, regions, 2) == CRT_OK);
}

static int mid(int n, int r, int c)
{
    int above = r == 0 ? 5 : a[(n * ROWS + r - 1) * COLS + c];
    int here = a[(n * ROWS + r) * COLS + c];
    int below = r == ROWS - 1 ? 5 : a[(n * ROWS + r + 1) * COLS + c];

    return above + 2 * here - below;
}

static void expect_y(const int8_t *y)
{
    int i;

    for (i = 0; i < IMAGES * ROWS / 2 * COLS; i++)
        EXPECT(y[i] == mid(i / 6, i / COLS % 2 * 2, i % COLS) + b[i % COLS]);
}

static void test_run(void)
{
    struct crt_graph g;
    int8_t y[12];
    int8_t z[6];
    int8_t w[9];
    int i;

    start(&g);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(g.failed_step == -1);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_OK);
    expect_y(y);
    EXPECT(crt_graph_get_output(&g, 1, z, 6) == CRT_OK);
    for (i = 0; i < 6; i++)
        EXPECT(z[i] == mid(1, 2 + i / COLS, i % COLS));
    EXPECT(crt_graph_get_output(&g, 2, w, 9) == CRT_OK);
    for (i = 0; i < 9; i++)
        EXPECT(w[i] == mid(0, i / COLS, i % COLS));
    EXPECT(arena[1].bytes[0] == 0x55 && arena[0].bytes[76] == 0x55);
}

static void test_inputs_are_used_up(void)
{
    struct crt_graph g;
    int8_t y[12];
    int8_t *borrowed;

    start(&g);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_ERR_NO_OUTPUT);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(memcmp(arena, a, 24) == 0 && arena[0].bytes[24] == 0x55);
    EXPECT(crt_graph_set_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_OK); /* untouched */
    borrowed = (int8_t *)crt_graph_input(&g, 0);
    EXPECT(borrowed == arena[0].bytes);
    memcpy(borrowed, a, 24);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_ERR_NO_OUTPUT);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK); /* b was kept */
    EXPECT(crt_graph_set_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_OK); /* b is not in y */
    expect_y(y);
    EXPECT(crt_graph_reset(&g) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_ERR_NO_OUTPUT);
}

static void test_bind(void)
{
    static const int8_t in_flash[COLS] = {1, 2, 3};
    struct crt_graph g;
    int64_t mine[3];
    int64_t out[2];
    int8_t y[12];

    start(&g);
    memcpy(mine, a, 24);
    EXPECT(crt_graph_bind_input(&g, 0, mine, 24) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, in_flash, 3) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 0, out, 12) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK); /* bound: stays given */
    EXPECT(memcmp(mine, a, 24) == 0);
    EXPECT(crt_graph_output(&g, 0) == out);
    expect_y((const int8_t *)out);
    EXPECT(crt_graph_input(&g, 0) == mine);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_OK);
    expect_y(y);
    EXPECT(crt_graph_reset(&g) == CRT_OK); /* bindings are kept */
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 0, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_ERR_NO_OUTPUT);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(crt_graph_output(&g, 0) == &arena[0]);
    expect_y(arena[0].bytes);
    EXPECT(crt_graph_bind_input(&g, 0, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 0, mine, 24) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK); /* ends the binding */
    EXPECT(crt_graph_input(&g, 0) == &arena[0]);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    expect_y(arena[0].bytes);
}

static void test_stages(void)
{
    struct crt_graph g;
    int8_t y[12];

    start(&g);
    EXPECT(crt_graph_run_stage(&g, pointers, 0) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_run_stage(&g, pointers, 1) == CRT_ERR_STAGE);
    EXPECT(crt_graph_run_stage(&g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_ERR_NO_OUTPUT);
    EXPECT(crt_graph_run_stage(&g, pointers, 2) == CRT_ERR_INDEX);
    EXPECT(crt_graph_run_stage(&g, pointers, 1) == CRT_OK);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_OK);
    expect_y(y);
    EXPECT(crt_graph_run_stage(&g, pointers, 1) == CRT_ERR_STAGE);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_run_stage(&g, pointers, 0) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK); /* in between */
    EXPECT(crt_graph_run_stage(&g, pointers, 1) == CRT_ERR_STAGE);
}

/* Nothing is said of stages: each step is one. */
static void test_steps_are_stages(void)
{
    struct crt_model m = model;
    struct crt_graph g;
    int8_t y[12];
    uint32_t i;

    m.stages = NULL;
    m.stage_count = m.step_count;
    start(&g);
    g.model = &m;
    for (i = 0; i < 2; i++) {
        crt_graph_set_input(&g, 0, a, 24);
        crt_graph_set_input(&g, 1, b, 3);
        if (i == 0)
            EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
        else
            for (; i < 5; i++)
                EXPECT(crt_graph_run_stage(&g, pointers, i - 1) == CRT_OK);
        EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_OK);
        expect_y(y);
    }
    EXPECT(crt_graph_run_stage(&g, pointers, 4) == CRT_ERR_INDEX);
}

static void test_init_refuses(void)
{
    struct crt_model other = model;
    struct crt_region small[2];
    struct crt_graph g;

    start(&g);
    memcpy(small, regions, sizeof small);
    EXPECT(crt_graph_init(NULL, &model, base, fresh, regions, 2) ==
           CRT_ERR_NULL);
    EXPECT(crt_graph_init(&g, NULL, base, fresh, regions, 2) == CRT_ERR_NULL);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_NULL); /* as never init */
    EXPECT(crt_graph_init(&g, &model, NULL, fresh, regions, 2) == CRT_ERR_NULL);
    EXPECT(crt_graph_init(&g, &model, base, NULL, regions, 2) == CRT_ERR_NULL);
    EXPECT(crt_graph_init(&g, &model, base, fresh, NULL, 2) == CRT_ERR_NULL);
    EXPECT(crt_graph_init(&g, &model, base, fresh, regions, 1) ==
           CRT_ERR_REGION);
    EXPECT(crt_graph_init(&g, &model, base, fresh, regions, 3) ==
           CRT_ERR_REGION);
    other.abi = CRT_ABI + 1;
    EXPECT(crt_graph_init(&g, &other, base, fresh, regions, 2) == CRT_ERR_ABI);
    small[1].bytes = KEPT_BYTES - 1;
    EXPECT(crt_graph_init(&g, &model, base, fresh, small, 2) == CRT_ERR_REGION);
    small[1].bytes = KEPT_BYTES;
    small[1].ptr = kept + 8;
    EXPECT(crt_graph_init(&g, &model, base, fresh, small, 2) == CRT_ERR_ALIGN);
    small[1].ptr = NULL;
    EXPECT(crt_graph_init(&g, &model, base, fresh, small, 2) == CRT_ERR_NULL);
    EXPECT(crt_graph_input_count(&g) == CRT_ERR_NULL);
}

static void test_wrong_arguments(void)
{
    struct crt_graph g;
    int8_t data[32] __attribute__((aligned(16)));

    start(&g);
    memset(data, 0, sizeof data);
    EXPECT(crt_graph_set_input(&g, 2, data, 24) == CRT_ERR_INDEX);
    EXPECT(crt_graph_set_input(&g, 0, NULL, 24) == CRT_ERR_NULL);
    EXPECT(crt_graph_set_input(&g, 0, data, 23) == CRT_ERR_SIZE);
    EXPECT(crt_graph_bind_input(&g, 0xffffffffu, data, 24) == CRT_ERR_INDEX);
    EXPECT(crt_graph_bind_input(&g, 0, data, 25) == CRT_ERR_SIZE);
    EXPECT(crt_graph_bind_input(&g, 0, data + 2, 24) == CRT_ERR_ALIGN);
    EXPECT(crt_graph_input(&g, 2) == NULL);
    EXPECT(crt_graph_bind_output(&g, 3, data, 12) == CRT_ERR_INDEX);
    EXPECT(crt_graph_bind_output(&g, 0, data, 0) == CRT_ERR_SIZE);
    EXPECT(crt_graph_bind_output(&g, 0, data + 1, 12) == CRT_ERR_ALIGN);
    EXPECT(crt_graph_output(&g, 3) == NULL);
    EXPECT(crt_graph_get_output(&g, 3, data, 12) == CRT_ERR_INDEX);
    EXPECT(crt_graph_get_output(&g, 0, NULL, 12) == CRT_ERR_NULL);
    EXPECT(crt_graph_get_output(&g, 0, data, 24) == CRT_ERR_SIZE);
    EXPECT(crt_graph_input_info(&g, 2) == NULL);
    EXPECT(crt_graph_output_info(&g, 3) == NULL);
    EXPECT(crt_graph_find_input(&g, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_find_output(&g, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_run(&g, NULL) == CRT_ERR_NULL);
    /* nothing of this counted as giving an input */
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
}

/* @req graph.h:CRT_ERR_NULL */
static void test_without_init(void)
{
    int8_t data[24];

    EXPECT(crt_graph_reset(&never) == CRT_ERR_NULL);
    EXPECT(crt_graph_reset(NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_set_input(&never, 0, data, 24) == CRT_ERR_NULL);
    EXPECT(crt_graph_bind_input(&never, 0, data, 24) == CRT_ERR_NULL);
    EXPECT(crt_graph_input(&never, 0) == NULL);
    EXPECT(crt_graph_input(NULL, 0) == NULL);
    EXPECT(crt_graph_bind_output(&never, 0, data, 12) == CRT_ERR_NULL);
    EXPECT(crt_graph_output(NULL, 0) == NULL);
    EXPECT(crt_graph_get_output(&never, 0, data, 12) == CRT_ERR_NULL);
    EXPECT(crt_graph_run(&never, pointers) == CRT_ERR_NULL);
    EXPECT(crt_graph_run_stage(NULL, pointers, 0) == CRT_ERR_NULL);
    EXPECT(crt_graph_input_count(&never) == CRT_ERR_NULL);
    EXPECT(crt_graph_output_count(NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_input_info(&never, 0) == NULL);
    EXPECT(crt_graph_output_info(&never, 0) == NULL);
    EXPECT(crt_graph_find_input(&never, "a") == CRT_ERR_NULL);
    EXPECT(crt_graph_find_output(&never, "y") == CRT_ERR_NULL);
}

static void test_what_there_is(void)
{
    struct crt_graph g;

    start(&g);
    EXPECT(crt_graph_input_count(&g) == 2);
    EXPECT(crt_graph_output_count(&g) == 3);
    EXPECT(crt_graph_find_input(&g, "b") == 1);
    EXPECT(crt_graph_find_input(&g, "y") == CRT_ERR_NAME);
    EXPECT(crt_graph_find_input(&g, "") == CRT_ERR_NAME);
    EXPECT(crt_graph_find_output(&g, "y") == 0);
    EXPECT(crt_graph_find_output(&g, "why") == 2);
    EXPECT(crt_graph_find_output(&g, "whys") == CRT_ERR_NAME);
    EXPECT(crt_graph_input_info(&g, 0) == &tensors[0]);
    EXPECT(crt_graph_output_info(&g, 1) == &tensors[3]);
}

/* 33 inputs: the bits of crt_graph.fresh take two words. */
static void test_many_inputs(void)
{
    static struct crt_tensor many[33];
    static void *many_base[34];
    static uint32_t bits[CRT_FRESH_WORDS(33)];
    static const uint32_t bytes = 33;
    struct crt_model m = model;
    struct crt_graph g;
    struct crt_region r = {&arena[0], 33};
    uint32_t i;

    for (i = 0; i < 33; i++) {
        many[i] = tensors[0];
        many[i].bytes = 1;
        many[i].align = 1;
        many[i].at = i;
    }
    m.tensors = many;
    m.stage_count = 0;
    m.input_count = 33;
    m.output_count = 0;
    m.region_bytes = &bytes;
    m.region_count = 1;
    EXPECT(sizeof bits == 8);
    EXPECT(crt_graph_init(&g, &m, many_base, bits, &r, 1) == CRT_OK);
    for (i = 0; i < 33; i++) {
        EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
        EXPECT(crt_graph_set_input(&g, i, a, 1) == CRT_OK);
    }
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
}

#ifndef CRT_NO_HOOK
/* What the hook saw, one line a call; stops at call `stop`. */
struct seen {
    int calls;
    int stop;
    uint32_t step[32];
    uint32_t first[32];
    uint32_t count[32];
    int8_t value[32];
};

static int look(void *context, uint32_t step, uint32_t first_row,
                uint32_t count, const void *rows)
{
    struct seen *s = (struct seen *)context;

    s->step[s->calls] = step;
    s->first[s->calls] = first_row;
    s->count[s->calls] = count;
    s->value[s->calls] = *(const int8_t *)rows;
    return s->calls++ == s->stop;
}

static void test_hook(void)
{
    struct crt_graph g;
    struct seen s;
    uint32_t i;

    start(&g);
    memset(&s, 0, sizeof s);
    s.stop = -1;
    EXPECT(crt_graph_set_hook(&never, look, &s) == CRT_ERR_NULL);
    EXPECT(crt_graph_set_hook(&g, look, &s) == CRT_OK);
    crt_graph_bind_input(&g, 0, a, 24);
    crt_graph_bind_input(&g, 1, b, 3);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(s.calls == 8 + 4 + 8 + 2);
    for (i = 0; i < 8; i++) { /* steps 0 and 2: a row at a time */
        EXPECT(s.step[i] == 0 && s.first[i] == i && s.count[i] == 1);
        EXPECT(s.value[i] == mid((int)i / 4, (int)i % 4, 0));
        EXPECT(s.step[12 + i] == 2 && s.first[12 + i] == i);
        EXPECT(s.count[12 + i] == 1 && s.value[12 + i] == s.value[i]);
    }
    for (i = 0; i < 4; i++)
        EXPECT(s.step[8 + i] == 1 && s.first[8 + i] == i);
    EXPECT(s.step[20] == 3 && s.first[20] == 0 && s.count[20] == 2);
    EXPECT(s.step[21] == 3 && s.first[21] == 2 && s.count[21] == 1);
    s.calls = 0;
    EXPECT(crt_graph_set_hook(&g, NULL, NULL) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(s.calls == 0);
}

static void test_hook_stops(void)
{
    struct crt_graph g;
    struct seen s;
    int8_t y[12];

    start(&g);
    memset(&s, 0, sizeof s);
    s.stop = 9;
    crt_graph_set_input(&g, 0, a, 24);
    crt_graph_bind_input(&g, 1, b, 3);
    crt_graph_set_hook(&g, look, &s);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_STOPPED);
    EXPECT(g.failed_step == 1 && s.calls == 10);
    EXPECT(crt_graph_get_output(&g, 0, y, 12) == CRT_ERR_NO_OUTPUT);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(g.failed_step == 1);
    crt_graph_set_input(&g, 0, a, 24);
    crt_graph_set_hook(&g, NULL, NULL);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(g.failed_step == -1);
}
#endif

static void test_texts(void)
{
#define EXPECT_TEXT(name, value, text)                                         \
    EXPECT(strcmp(crt_strerror(name), text) == 0);
    CRT_ERRORS(EXPECT_TEXT)
    EXPECT(strcmp(crt_strerror(1), "unknown error") == 0);
    EXPECT(crt_abi_9 == CRT_ABI);
}

/* Of each function, which a compiler may test in its own place. */
static void test_no_instance(void)
{
    struct crt_graph *const two[2] = {NULL, &never};
    struct crt_array array;
    uint8_t room[4] = {0};
    int i;

    memset(&array, 0, sizeof array);
    for (i = 0; i < 2; i++) {
        struct crt_graph *g = two[i];

        EXPECT(crt_graph_bind_input_array(g, 0, &array) == CRT_ERR_NULL);
        EXPECT(crt_graph_bind_output_array(g, 0, &array) == CRT_ERR_NULL);
        EXPECT(crt_graph_set_devices(g, NULL, 0) == CRT_ERR_NULL);
        EXPECT(crt_graph_find_input(g, "a") == CRT_ERR_NULL);
        EXPECT(crt_graph_find_output(g, "y") == CRT_ERR_NULL);
        EXPECT(crt_graph_push_inputs(g, pointers, 0) == CRT_ERR_NULL);
        EXPECT(crt_graph_pushed(g) == CRT_ERR_NULL);
        EXPECT(crt_graph_push_rows(g, pointers, 0, room, 1) == CRT_ERR_NULL);
        EXPECT(crt_graph_rows_left(g, 0) == CRT_ERR_NULL);
        EXPECT(crt_graph_rows_wanted(g, 0) == CRT_ERR_NULL);
        EXPECT(crt_graph_parameter_count(g) == CRT_ERR_NULL);
        EXPECT(crt_graph_find_parameter(g, "w") == CRT_ERR_NULL);
        EXPECT(crt_graph_bind_parameter(g, 0, room, 1) == CRT_ERR_NULL);
        EXPECT(crt_graph_release_params(g) == CRT_ERR_NULL);
        EXPECT(crt_graph_run_stage(g, pointers, 0) == CRT_ERR_NULL);
        EXPECT(crt_graph_run(g, pointers) == CRT_ERR_NULL);
        EXPECT(crt_state_bytes(g) == CRT_ERR_NULL);
        EXPECT(crt_state_save(g, room, 4) == CRT_ERR_NULL);
        EXPECT(crt_state_restore(g, room, 4) == CRT_ERR_NULL);
#ifndef CRT_NO_HOOK
        EXPECT(crt_graph_set_hook(g, NULL, NULL) == CRT_ERR_NULL);
#endif
    }
}

/* An input without memory of its own is never used up. */
static void test_a_lazy_input_is_not_consumed(void)
{
    struct crt_tensor own[5];
    struct crt_model m = model;
    struct crt_graph g;

    memcpy(own, tensors, sizeof own);
    own[0].flags |= CRT_TENSOR_LAZY;
    m.tensors = own;
    start(&g);
    g.model = &m;
    EXPECT(crt_graph_bind_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
}

int main(void)
{
    test_run();
    test_inputs_are_used_up();
    test_bind();
    test_stages();
    test_steps_are_stages();
    test_init_refuses();
    test_wrong_arguments();
    test_without_init();
    test_what_there_is();
    test_many_inputs();
    test_no_instance();
    test_a_lazy_input_is_not_consumed();
#ifndef CRT_NO_HOOK
    test_hook();
    test_hook_stops();
#endif
    test_texts();
    return failures != 0;
}
