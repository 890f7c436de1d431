/* Inputs that are converted when they are set, in a model of four steps. */
#include "expect.h"

#include "crt/convert.h"
#include "crt/lockstep.h"
#include "crt/slots.h"

#include <string.h>

/*   p = x / 2 (x float32, of 1 row);  q = z / 4 (z int16, of 2 rows)
 *   y[r] = p[r] + q[r] + b[r]         (b int8, as it is) */
enum {
    LEN = 4,
    ARENA = 32,
    AT_P = 0,
    AT_Q = 4,
    AT_B = 8,
    AT_Y = 12,
    AT_S = 16
};

static void halve(void *const *p, const int32_t *a)
{
    int i;

    (void)a;
    for (i = 0; i < LEN; i++)
        ((int8_t *)p[0])[i] = (int8_t)(((const float *)p[1])[i] / 2);
}

static void quarter(void *const *p, const int32_t *a)
{
    int i;

    (void)a;
    for (i = 0; i < LEN / 2; i++)
        ((int8_t *)p[0])[i] = (int8_t)(((const int16_t *)p[1])[i] / 4);
}

static void add(void *const *p, const int32_t *a)
{
    int i;

    for (i = 0; i < a[0]; i++)
        ((int8_t *)p[0])[i] =
            (int8_t)(((const int8_t *)p[1])[i] + ((const int8_t *)p[2])[i]);
}

static const int32_t counts[] = {LEN, 1};
/* pad_row, row_bytes, count, ring, window, stride, pad */
static const struct crt_rows met[] = {{NULL, 0, 1, 1, 1, 0, 0},
                                      {NULL, 2, 2, 2, 1, 1, 0},
                                      {NULL, 4, 2, 2, 1, 1, 0},
                                      {NULL, 1, LEN, LEN, 1, 1, 0},
                                      {NULL, 1, LEN, 1, 1, 1, 0}};
/* at, buffer, rows; buffers: 0 arena, 1 b, 2 x, 3 z, 4 y */
static const struct crt_operand of_p[] = {{AT_P, 0, 0}, {0, 2, 0}};
static const struct crt_operand of_q[] = {{AT_Q, 0, 1}, {0, 3, 2}};
static const struct crt_operand of_s[] = {
    {AT_S, 0, 4}, {AT_P, 0, 3}, {AT_Q, 0, 3}};
static const struct crt_operand of_y[] = {{0, 4, 3}, {AT_S, 0, 4}, {0, 1, 3}};
static const struct crt_step steps[] = {
    {halve, counts, NULL, of_p, 1, 1, 1, 1, 0, 0},
    {quarter, counts, NULL, of_q, 1, 2, 1, 1, 0, 0},
    {add, counts + 1, NULL, of_s, 1, LEN, 1, 2, 0, 0},
    {add, counts + 1, NULL, of_y, 1, LEN, 1, 2, 0, 0}};
static const struct crt_link links[] = {
    {0, 0, 0, 0, 0, 0, 0}, {2, 1, 1, 1, LEN, 1, 0}, {0, 0, 0, 0, 0, 0, 0}};
static const struct crt_stage stages[] = {
    {0, 1, 0, 1}, {1, 1, 0, 1}, {2, 2, 0, 1}};
/* without lock step: one step that adds whole rows */
static const struct crt_operand of_sum[] = {
    {0, 4, 0}, {AT_P, 0, 0}, {AT_Q, 0, 0}};
static const struct crt_step plain_steps[] = {
    {halve, counts, NULL, of_p, 1, 1, 1, 1, 0, 0},
    {quarter, counts, NULL, of_q, 1, 2, 1, 1, 0, 0},
    {add, counts, NULL, of_sum, 1, 1, 1, 2, 0, 0}};
static const struct crt_stage plain_stages[] = {
    {0, 1, 0, 1}, {1, 1, 0, 1}, {2, 1, 0, 0}};

static const int32_t four[] = {LEN};
#define WHEN_SET (CRT_TENSOR_CONVERTED | CRT_TENSOR_CONSUMED)
static const struct crt_tensor tensors[] = {
    {"b", four, 0, 0, LEN, AT_B, 1, 0, CRT_INT8, 1, 0},
    {"x", four, 0, 0, 4 * LEN, AT_P, 4, 0, CRT_FLOAT32, 1, WHEN_SET},
    {"z", four, 0, 0, 2 * LEN, AT_Q, 2, 0, CRT_INT16, 1, WHEN_SET},
    {"y", four, 0, 0, LEN, AT_Y, 1, 0, CRT_INT8, 1, 0}};
static const uint32_t region_bytes[] = {ARENA};

static struct crt_model made(int by_rows)
{
    struct crt_model m;

    memset(&m, 0, sizeof m);
    m.abi = CRT_ABI;
    m.stages = by_rows ? stages : plain_stages;
    m.steps = by_rows ? steps : plain_steps;
    m.rows = met;
    m.tensors = tensors;
    m.region_bytes = region_bytes;
    m.advance = by_rows ? crt_convert_lockstep : crt_convert_advance;
    m.links = links;
    m.counters = 24;
    m.stage_count = 3;
    m.step_count = by_rows ? 4 : 3;
    m.input_count = 3;
    m.output_count = 1;
    m.pointer_count = 3;
    m.region_align = 16;
    m.region_count = 1;
    m.device_count = 1;
    m.convert = crt_convert_input;
    return m;
}

/* what is behind the arena belongs to nobody */
static uint8_t arena[ARENA + 16] __attribute__((aligned(16)));
static void *base[5];
static uint32_t fresh[1];
static struct crt_graph g;
static void *pointers[3];

static const int8_t b[LEN] = {1, 2, 3, 4};
static const float x[LEN] = {20, -40, 60, 8};
static const int16_t z[LEN] = {400, 40, -40, 4};

static void start(const struct crt_model *m)
{
    struct crt_region region;

    memset(arena, 0x55, sizeof arena);
    region.ptr = arena;
    region.bytes = ARENA;
    EXPECT(crt_graph_init(&g, m, base, fresh, &region, 1) == CRT_OK);
}

static int set(uint32_t index)
{
    static const void *const data[] = {b, x, z};

    return crt_graph_set_input(&g, index, data[index], tensors[index].bytes);
}

static int is_sum(int with_b)
{
    const int8_t *y = (const int8_t *)crt_graph_output(&g, 0);
    int i;

    for (i = 0; i < LEN; i++)
        if (y[i] != (int8_t)(x[i] / 2) + z[i] / 4 + (with_b ? b[i] : 0))
            return 0;
    return arena[ARENA] == 0x55;
}

/* Set in any order; data may change afterwards; a run uses them up. */
static void test_set(void)
{
    struct crt_model m = made(1);
    float mine[LEN];

    start(&m);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_missing(&g) == &tensors[0]);
    EXPECT(set(2) == CRT_OK && set(0) == CRT_OK);
    memcpy(mine, x, sizeof mine);
    EXPECT(crt_graph_set_input(&g, 1, mine, sizeof mine) == CRT_OK);
    memset(mine, 0, sizeof mine);
    EXPECT(((int8_t *)arena)[AT_P + 1] == -20);
    EXPECT(crt_graph_input(&g, 1) == NULL); /* no floats there */
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(1));
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(set(1) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(set(2) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(1));
}

/* Bound: each run reads it where it is, so it is not used up. */
static void test_bind(void)
{
    struct crt_model m = made(0);

    start(&m);
    EXPECT(set(0) == CRT_OK && set(2) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, x, sizeof x) == CRT_OK);
    EXPECT(crt_graph_input(&g, 1) == x);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(0));
    EXPECT(set(2) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(0));
    EXPECT(crt_graph_bind_input(&g, 1, NULL, 0) == CRT_OK);
    EXPECT(set(2) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(set(1) == CRT_OK); /* ends a binding, too */
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(0));
}

/* By stages, as for timing: those of inputs that were set are empty. */
static void test_stages(void)
{
    struct crt_model m = made(1);
    uint32_t stage;

    start(&m);
    EXPECT(set(0) == CRT_OK && set(1) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 2, z, sizeof z) == CRT_OK);
    for (stage = 0; stage < 3; stage++)
        EXPECT(crt_graph_run_stage(&g, pointers, stage) == CRT_OK);
    EXPECT(is_sum(1));
}

/* Two instances in one memory: what was set is gone when the other is set. */
static void test_turns(void)
{
    struct crt_model m = made(1);
    void *other_base[5];
    uint32_t other_fresh[1];
    struct crt_graph other;
    struct crt_region region;
    struct crt_turn turn;

    start(&m);
    region.ptr = arena;
    region.bytes = ARENA;
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    EXPECT(crt_graph_init(&other, &m, other_base, other_fresh, &region, 1) ==
           CRT_OK);
    EXPECT(crt_graph_share_storage(&g, &turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&other, &turn) == CRT_OK);
    EXPECT(set(0) == CRT_OK && set(1) == CRT_OK && set(2) == CRT_OK);
    EXPECT(crt_graph_set_input(&other, 1, x, sizeof x) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(set(0) == CRT_OK && set(1) == CRT_OK && set(2) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(1));
}

/* Memory of the model's is not data. */
static void test_places(void)
{
    struct crt_model m = made(1);
    float *home = (float *)(void *)(arena + AT_P);

    start(&m);
#ifndef CRT_NO_OVERLAP
    EXPECT(crt_graph_set_input(&g, 1, arena + 8, sizeof x) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_input(&g, 1, arena + 8, sizeof x) == CRT_ERR_OVERLAP);
#endif
    EXPECT(crt_graph_set_input(&g, 1, home, sizeof x) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_set_input(&g, 1, (const uint8_t *)x + 1, sizeof x) ==
           CRT_ERR_ALIGN);
    EXPECT(crt_graph_set_input(&g, 1, x, 4) == CRT_ERR_SIZE);
    EXPECT(set(0) == CRT_OK && set(2) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
}

#ifndef CRT_NO_HOOK
static int stop(void *context, uint32_t step, uint32_t first, uint32_t count,
                const void *rows)
{
    (void)first;
    (void)count;
    (void)rows;
    return step == *(const uint32_t *)context;
}

/* A hook sees what converts, and stops it: the input then counts as missing. */
static void test_hook(void)
{
    struct crt_model m = made(1);
    uint32_t step = 1;

    start(&m);
    EXPECT(crt_graph_set_hook(&g, stop, &step) == CRT_OK);
    EXPECT(set(0) == CRT_OK && set(1) == CRT_OK);
    EXPECT(set(2) == CRT_ERR_STOPPED && g.failed_step == 1);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_bind_input(&g, 2, z, sizeof z) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_STOPPED);
    EXPECT(g.failed_step == 1);
    step = 9;
    EXPECT(set(1) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK && is_sum(1));
}
#endif

int main(void)
{
    test_set();
    test_bind();
    test_stages();
    test_turns();
    test_places();
#ifndef CRT_NO_HOOK
    test_hook();
#endif
    return failures != 0;
}
