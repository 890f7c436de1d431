/* Rows of an input that the caller pushes, through steps by hand. */
#include "rings.h"

#include "crt/push.h"

/* y[r] = x[r] + x[r + 1] + k[0], then z = sum of y; x comes in rows, k does
 * not. Stages: w = k (before), x and y in lock step, z (after). */
enum { OF_X = 0, OF_Y = 4, OF_K = 12, OF_COUNT = 16, OF_Z = 30, OF_W = 31 };

static const int32_t input_task[] = {CRT_TASK_INPUT, 0};
static const int32_t three[] = {3};
static const struct crt_operand of_w[] = {{OF_W, 0, 5}, {0, 2, 5}};
static const struct crt_operand of_x[] = {{OF_X, 0, 0}};
static const struct crt_operand of_pair[] = {
    {OF_Y, 0, 7}, {OF_X, 0, 8}, {OF_W, 0, 5}};
static const struct crt_operand of_all[] = {{0, 3, 5}, {OF_Y, 0, 9}};
static const int32_t seven[] = {ROWS};
static const struct crt_step push_steps[] = {
    {sum, terms + 2, NULL, of_w, 1, 1, 1, 1, 0, 0},
    {NULL, input_task, NULL, of_x, 1, ROWS, 1, 0, 0, 0},
    {sum, three, NULL, of_pair, 1, ROWS, 1, 2, 0, 0},
    {sum, seven, NULL, of_all, 1, 1, 1, 1, 0, 0}};
static const int32_t one_term[] = {1};
static const struct crt_stage push_stages[] = {
    {0, 1, 0, 0}, {1, 2, 0, 1}, {3, 1, 0, 0}};
static const struct crt_link push_links[] = {
    {0, 0, 0, 0, 0, 0, 0}, {2, 1, 1, 2, ROWS, 1, 0}, {0, 0, 0, 0, 0, 0, 0}};
static const struct crt_tensor push_tensors[] = {
    {"x", rows, 0, 0, ROWS, OF_X, 1, 0, CRT_UINT8, 1,
     CRT_TENSOR_LAZY | CRT_TENSOR_PUSHED},
    {"k", NULL, 0, 0, 1, OF_K, 1, 0, CRT_UINT8, 0, 0},
    {"z", NULL, 0, 0, 1, OF_Z, 1, 0, CRT_UINT8, 0, 0}};
static const uint8_t seen_rows[ROWS] = {1, 2, 3, 4, 5, 6, 7};

static void start_push(struct crt_graph *g, struct crt_model *m,
                       struct crt_step *own)
{
    struct crt_region region;

    *m = made();
    memcpy(own, push_steps, sizeof push_steps);
    own[0].args = one_term;
    m->steps = own;
    m->stages = push_stages;
    m->links = push_links;
    m->tensors = push_tensors;
    m->counters = OF_COUNT;
    m->stage_count = 3;
    m->input_count = 2;
    m->output_count = 1;
    m->pointer_count = 8;
    memset(g, 0, sizeof *g);
    region.ptr = arena;
    region.bytes = ARENA;
    memset(arena, 0x55, sizeof arena);
    EXPECT(crt_graph_init(g, m, base, fresh, &region, 1) == CRT_OK);
}

static void *push_pointers[8];

static int push(struct crt_graph *g, uint32_t first, uint32_t count)
{
    return crt_graph_push_rows(g, push_pointers, 0, seen_rows + first, count);
}

/* sum of x[r] + x[r + 1] + k, the row after the last being 1 */
/* @req crt_graph_push_rows:CRT_ERR_PUSHED, crt_graph_push_rows:CRT_ERR_ROWS
 * @req crt_graph_push_rows:Owner */
static void test_push(void)
{
    const uint8_t k = 2;
    const uint8_t want = 28 + 27 + 1 + 7 * 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;
    uint32_t r;

    start_push(&g, &m, own);
    m.stages = NULL;
    EXPECT(push(&g, 0, 1) == CRT_ERR_PUSHED); /* nothing is in lock step */
    m.stages = push_stages;
    EXPECT(push(&g, 0, 1) == CRT_ERR_INPUT_MISSING); /* k */
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(crt_graph_rows_left(&g, 0) == ROWS);
    EXPECT(crt_graph_rows_wanted(&g, 0) == 2);
    EXPECT(push(&g, 0, ROWS + 1) == CRT_ERR_ROWS);
    EXPECT(push(&g, 0, 0) == CRT_OK);
#ifndef CRT_NO_OVERLAP /* the first rows are copied before the last are read   \
                        */
    EXPECT(crt_graph_push_rows(&g, push_pointers, 0, arena + OF_Y, 2) ==
           CRT_ERR_OVERLAP);
#endif
    EXPECT(crt_graph_pushed(&g) == CRT_ERR_INPUT_MISSING);
    EXPECT(push(&g, 0, 2) == CRT_OK);
    EXPECT(arena[OF_Y] == 5 && arena[OF_Y + 1] == 0x55); /* at once */
    EXPECT(crt_graph_rows_wanted(&g, 0) == 1);
    EXPECT(crt_graph_rows_left(&g, 0) == ROWS - 2);
    EXPECT(push(&g, 2, ROWS - 1) == CRT_ERR_ROWS);
    for (r = 2; r < ROWS; r++)
        EXPECT(push(&g, r, 1) == CRT_OK);
    EXPECT(crt_graph_pushed(&g) == CRT_OK);
    EXPECT(arena[OF_Z] == want && g.failed_step == -1);
    EXPECT(push(&g, 0, ROWS) == CRT_OK); /* again, all at once */
    EXPECT(crt_graph_pushed(&g) == CRT_OK && arena[OF_Z] == want);
}

/* What comes before the rows may be several stages. */
static void test_two_stages_before(void)
{
    static const struct crt_stage four[] = {
        {0, 1, 0, 0}, {0, 1, 0, 0}, {1, 2, 0, 1}, {3, 1, 0, 0}};
    const uint8_t k = 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;

    start_push(&g, &m, own);
    m.stages = four;
    m.stage_count = 4;
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(push(&g, 0, ROWS) == CRT_OK);
    EXPECT(crt_graph_pushed(&g) == CRT_OK && arena[OF_Z] == 28 + 27 + 1 + 14);
}

/* Each bit of the counters flips after each row: the rest is a result or an
 * error, no access leaves the arena, and the next run is right again. */
static void test_flipped_counters(void)
{
    const uint8_t k = 2;
    const uint8_t want = 28 + 27 + 1 + 7 * 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;
    uint32_t refused = 0;
    uint32_t at;
    uint32_t r;

    start_push(&g, &m, own);
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    for (at = 0; at < 32u * ROWS; at++) {
        int error = CRT_OK;

        for (r = 0; r < ROWS && error == CRT_OK; r++) {
            error = push(&g, r, 1);
            if (r == at / 32u) {
                arena[OF_COUNT + at % 32u / 8u] ^= (uint8_t)(1u << (at & 7u));
                EXPECT(crt_graph_rows_wanted(&g, 0) <= ROWS);
                EXPECT(crt_graph_rows_left(&g, 0) <= ROWS);
            }
        }
        refused += error == CRT_ERR_ROWS;
        EXPECT(error == CRT_OK || error == CRT_ERR_ROWS);
        EXPECT(crt_graph_reset(&g) == CRT_OK);
        EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
        EXPECT(push(&g, 0, ROWS) == CRT_OK && arena[OF_Z] == want);
        EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    }
    EXPECT(refused > 32u);
    /* all is said to be done: that is not a step before the first */
    EXPECT(push(&g, 0, 1) == CRT_OK);
    memset(arena + OF_COUNT, 1, 4); /* 257 in either order of bytes */
    EXPECT(crt_graph_rows_wanted(&g, 0) == 0);
    EXPECT(crt_graph_rows_left(&g, 0) == 0);
    EXPECT(push(&g, 1, 1) == CRT_ERR_ROWS);
}

static void test_push_and_bind_do_not_mix(void)
{
    static uint8_t whole[ROWS];
    const uint8_t k = 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;

    start_push(&g, &m, own);
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 0, whole, ROWS) == CRT_ERR_LAZY);
    EXPECT(crt_graph_input(&g, 0) == NULL);
    EXPECT(push(&g, 0, 1) == CRT_OK);
    EXPECT(crt_graph_run(&g, push_pointers) != CRT_OK);
    EXPECT(crt_graph_rows_left(&g, 0) == ROWS); /* that ended it */
    EXPECT(crt_graph_bind_input(&g, 0, whole, ROWS) == CRT_OK);
    EXPECT(push(&g, 0, 1) == CRT_ERR_PUSHED);
    EXPECT(crt_graph_rows_left(&g, 0) == CRT_ERR_PUSHED);
    EXPECT(crt_graph_run(&g, push_pointers) == CRT_ERR_INPUT_MISSING);
    EXPECT(crt_graph_bind_input(&g, 0, NULL, 0) == CRT_OK);
    EXPECT(push(&g, 0, ROWS) == CRT_OK);
}

/* @req crt_graph_rows_wanted:Errors, crt_graph_rows_left:Errors */
static void test_push_checks(void)
{
    const void *nothing[2] = {NULL, NULL};
    static const struct crt_link more[] = {{0, 0, 0, 0, 0, 0, 0},
                                           {2, 1, 1, 2, ROWS, 1, 0},
                                           {2, 1, 1, 9, ROWS, 1, 0},
                                           {2, 1, 1, 1, ROWS, 1, 0},
                                           {0, 0, 0, 0, 0, 0, 0}};
    const uint8_t k = 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;
    struct crt_graph none;

    memset(&none, 0, sizeof none);
    start_push(&g, &m, own);
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(push(&none, 0, 1) == CRT_ERR_NULL);
    EXPECT(crt_graph_pushed(&none) == CRT_ERR_NULL);
    EXPECT(crt_graph_rows_wanted(&none, 0) == CRT_ERR_NULL);
    EXPECT(crt_graph_push_rows(&g, NULL, 0, seen_rows, 1) == CRT_ERR_NULL);
    EXPECT(crt_graph_push_rows(&g, push_pointers, 0, NULL, 1) == CRT_ERR_NULL);
    EXPECT(crt_graph_push_rows(&g, push_pointers, 2, seen_rows, 1) ==
           CRT_ERR_INDEX);
    EXPECT(crt_graph_rows_wanted(&g, 2) == CRT_ERR_INDEX);
    EXPECT(crt_graph_rows_wanted(&g, 1) == CRT_ERR_PUSHED);
    m.links = more;
    EXPECT(crt_graph_rows_wanted(&g, 0) == ROWS);
    m.links = push_links;
    EXPECT(crt_graph_push_inputs(&none, push_pointers, NULL) == CRT_ERR_NULL);
    EXPECT(crt_graph_push_inputs(&none, push_pointers, nothing) ==
           CRT_ERR_NULL);
    EXPECT(crt_graph_push_inputs(&g, push_pointers, NULL) == CRT_ERR_NULL);
    own[1].args = seven; /* another task than that of an input */
    EXPECT(crt_graph_rows_left(&g, 0) == CRT_ERR_PUSHED);
}

/* Each row where it is wanted; from the first on, whatever was begun. */
static void test_inputs_at_once(struct crt_graph *g, struct crt_model *m)
{
    static const uint8_t ones[ROWS] = {1, 1, 1, 1, 1, 1, 1};
    static const struct crt_link from_behind[] = {{0, 0, 0, 0, 0, 0, 0},
                                                  {3, 2, 1, -1, ROWS, 1, 0},
                                                  {3, 1, 1, -1, ROWS, 1, 0},
                                                  {0, 0, 0, 0, 0, 0, 0}};
    const void *inputs[2];
    uint32_t r;

    inputs[0] = seen_rows;
    inputs[1] = ones;
    EXPECT(crt_graph_push_rows(g, push_pointers, 1, ones, 1) == CRT_OK);
    EXPECT(crt_graph_push_inputs(g, push_pointers, inputs) == CRT_OK);
    EXPECT(crt_graph_pushed(g) == CRT_OK);
    for (r = 0; r < ROWS; r++)
        EXPECT(arena[OF_Y + r] == seen_rows[r] + 1);
    m->links = from_behind; /* the first that is tried is not the one */
    EXPECT(crt_graph_push_inputs(g, push_pointers, inputs) == CRT_OK);
    inputs[1] = NULL;
    EXPECT(crt_graph_push_inputs(g, push_pointers, inputs) == CRT_ERR_NULL);
}

/* x and v come in rows; y[r] = x[r] + v[r] + w */
static void test_two_inputs(void)
{
    static const int32_t second[] = {CRT_TASK_INPUT, 1};
    static const struct crt_operand of_v[] = {{OF_K, 0, 10}};
    static const struct crt_operand of_both[] = {
        {OF_Y, 0, 7}, {OF_X, 0, 0}, {OF_K, 0, 10}};
    static const struct crt_stage two_stages[] = {{0, 3, 0, 1}};
    static const struct crt_link two_links[] = {{0, 0, 0, 0, 0, 0, 0},
                                                {3, 2, 1, 1, ROWS, 1, 0},
                                                {3, 1, 1, 1, ROWS, 1, 0},
                                                {0, 0, 0, 0, 0, 0, 0}};
    static const struct crt_step two_steps[] = {
        {NULL, input_task, NULL, of_x, 1, ROWS, 1, 0, 0, 0},
        {NULL, second, NULL, of_v, 1, ROWS, 1, 0, 0, 0},
        {sum, terms + 1, NULL, of_both, 1, ROWS, 1, 2, 0, 0}};
    struct crt_tensor two[3];
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;
    uint32_t r;

    start_push(&g, &m, own);
    memcpy(two, push_tensors, sizeof two);
    two[1] = two[0];
    m.tensors = two;
    m.steps = two_steps;
    m.stages = two_stages;
    m.links = two_links;
    m.stage_count = 1;
    *crt_slot(&g, 1) = NULL; /* as init leaves one that is pushed */
    for (r = 0; r < ROWS; r++) {
        const uint8_t *row = seen_rows + r;

        EXPECT(push(&g, r, 1) == CRT_ERR_ROWS);
        EXPECT(crt_graph_rows_wanted(&g, 0) == 0);
        EXPECT(crt_graph_rows_wanted(&g, 1) == 1);
        EXPECT(crt_graph_push_rows(&g, push_pointers, 1, row, 1) == CRT_OK);
        EXPECT(crt_graph_rows_wanted(&g, 1) == 0);
        EXPECT(crt_graph_rows_wanted(&g, 0) == 1);
        EXPECT(push(&g, r, 1) == CRT_OK);
        EXPECT(arena[OF_Y + r] == 2 * *row);
    }
    EXPECT(crt_graph_pushed(&g) == CRT_OK);
    test_inputs_at_once(&g, &m);
}

/* Two rows of x are read by none: they come all the same. */
static void test_rows_that_none_reads(void)
{
    static const struct crt_link fewer[] = {{0, 0, 0, 0, 0, 0, 0},
                                            {2, 1, 1, 1, ROWS - 2, 1, 0},
                                            {0, 0, 0, 0, 0, 0, 0}};
    const uint8_t k = 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;

    start_push(&g, &m, own);
    own[2].bands = ROWS - 2;
    m.links = fewer;
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(push(&g, 0, ROWS - 3) == CRT_OK);
    EXPECT(crt_graph_rows_wanted(&g, 0) == 1);
    EXPECT(push(&g, ROWS - 3, 1) == CRT_OK);
    EXPECT(crt_graph_rows_wanted(&g, 0) == 2);
    EXPECT(push(&g, ROWS - 2, 2) == CRT_OK);
    EXPECT(crt_graph_pushed(&g) == CRT_OK);
}

/* A layer that needs no row comes first: which input is next is then not yet
 * known. */
static void test_rows_after_a_layer(void)
{
    static const struct crt_link after[] = {{0, 0, 0, 0, 0, 0, 0},
                                            {2, 1, 1, -1, ROWS, 1, 0},
                                            {0, 0, 0, 0, 0, 0, 0}};
    const uint8_t k = 2;
    const void *inputs[2];
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;

    inputs[0] = seen_rows;
    inputs[1] = NULL; /* no input that takes rows */
    start_push(&g, &m, own);
    m.links = after;
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(crt_graph_rows_wanted(&g, 0) == 1);
    EXPECT(crt_graph_push_inputs(&g, push_pointers, inputs) == CRT_OK);
    EXPECT(crt_graph_pushed(&g) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 0, seen_rows, ROWS) == CRT_OK);
    EXPECT(crt_graph_push_inputs(&g, push_pointers, inputs) == CRT_ERR_PUSHED);
}

#ifndef CRT_NO_HOOK
static void test_pushes_stop(void)
{
    const uint8_t k = 2;
    struct crt_step own[4];
    struct crt_model m;
    struct crt_graph g;
    struct seen s = {"", 0, 1};

    start_push(&g, &m, own);
    EXPECT(crt_graph_set_input(&g, 1, &k, 1) == CRT_OK);
    EXPECT(crt_graph_set_hook(&g, look, &s) == CRT_OK);
    EXPECT(push(&g, 0, 1) == CRT_ERR_STOPPED && g.failed_step == 0);
    s.stop = 3;
    EXPECT(push(&g, 0, 1) == CRT_OK);
    EXPECT(push(&g, 1, 1) == CRT_ERR_STOPPED && g.failed_step == 2);
    s.stop = 3 + 1 + ROWS + 1;
    EXPECT(push(&g, 0, ROWS) == CRT_ERR_STOPPED && g.failed_step == 3);
    EXPECT(crt_graph_pushed(&g) == CRT_ERR_INPUT_MISSING);
}
#endif

int main(void)
{
    test_push();
    test_two_stages_before();
    test_flipped_counters();
    test_push_and_bind_do_not_mix();
    test_push_checks();
    test_two_inputs();
    test_rows_that_none_reads();
    test_rows_after_a_layer();
#ifndef CRT_NO_HOOK
    test_pushes_stop();
#endif
    return failures != 0;
}
