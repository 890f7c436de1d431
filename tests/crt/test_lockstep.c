/* Three steps in lock step, by hand: order, rings, what a hook sees. */
#include "expect.h"

#include "crt/lockstep.h"
#include "crt/slots.h"

#include <string.h>

/*   s[r] = x[r - 1] + x[r] + x[r + 1]   rows outside are 1
 *   t[q] = s[2 q] + s[2 q + 1]          a row outside is 1
 *   y[q] = t[q] + x[2 q]                and the whole of t is summed in z */
#define ROWS  7
#define HALF  4
#define ARENA 32

enum { AT_X = 0, AT_S = 8, AT_T = 12, AT_Y = 16, AT_COUNT = 20, AT_Z = 30 };

static const uint8_t one[1] = {1};
static const int32_t terms[] = {3, 2, 4};

/* p: out, then a[0] rows of one byte */
static void sum(void *const *p, const int32_t *a)
{
    uint8_t *out = (uint8_t *)p[0];
    unsigned total = 0;
    int32_t i;

    for (i = 1; i <= a[0]; i++)
        total += *(const uint8_t *)p[i];
    *out = (uint8_t)total;
}

/* pad_row, at, row_bytes, buffer, rows, ring, window, stride, pad;
 * buffers: 0 arena, 1 x, 2 y, 3 z */
static const struct crt_operand of_s[] = {{NULL, AT_S, 1, 0, ROWS, 2, 1, 1, 0},
                                          {one, 0, 1, 1, ROWS, ROWS, 3, 1, 1}};
static const struct crt_operand of_t[] = {
    {NULL, AT_T, 1, 0, HALF, HALF, 1, 1, 0},
    {one, AT_S, 1, 0, ROWS, 2, 2, 2, 0}};
static const struct crt_operand of_y[] = {
    {NULL, 0, 1, 2, HALF, HALF, 1, 1, 0},
    {NULL, AT_T, 1, 0, HALF, HALF, 1, 1, 0},
    {NULL, 0, 1, 1, ROWS, ROWS, 1, 2, 0}};
static const struct crt_operand of_z[] = {
    {NULL, 0, 1, 3, 1, 1, 1, 0, 0}, {NULL, AT_T, 1, 0, HALF, HALF, 4, 0, 0}};

static const struct crt_step steps[] = {
    {sum, terms, NULL, of_s, 1, ROWS, 1, 1, 0, 0},
    {sum, terms + 1, NULL, of_t, 1, HALF, 1, 1, 0, 0},
    {sum, terms + 2, NULL, of_z, 1, 1, 1, 1, 0, 0},
    {sum, terms + 1, NULL, of_y, 1, HALF, 1, 2, 0, 0}};
static const struct crt_stage stages[] = {{0, 4, 0, 1}};
static const struct crt_link links[] = {{0, 0, 0, 0, 0, 0},
                                        {4, 2, 1, 1, HALF, 1},
                                        {3, 2, 0, HALF, HALF, 1},
                                        {2, 1, 2, 2, ROWS, 1},
                                        {0, 0, 0, 0, 0, 0}};

static const int32_t rows[] = {ROWS};
static const int32_t half[] = {HALF};
static const struct crt_tensor tensors[] = {
    {"x", rows, 0, 0, ROWS, AT_X, 1, 0, CRT_UINT8, 1, 0},
    {"y", half, 0, 0, HALF, AT_Y, 1, 0, CRT_UINT8, 1, 0},
    {"z", NULL, 0, 0, 1, AT_Z, 1, 0, CRT_UINT8, 0, 0}};
static const uint32_t region_bytes[] = {ARENA};

static struct crt_model made(void)
{
    struct crt_model m;

    memset(&m, 0, sizeof m);
    m.abi = CRT_ABI;
    m.stages = stages;
    m.steps = steps;
    m.tensors = tensors;
    m.region_bytes = region_bytes;
    m.advance = crt_lockstep;
    m.links = links;
    m.counters = AT_COUNT;
    m.stage_count = 1;
    m.step_count = 4;
    m.input_count = 1;
    m.output_count = 2;
    m.pointer_count = 5;
    m.region_align = 16;
    m.region_count = 1;
    m.device_count = 1;
    return m;
}

static uint8_t arena[ARENA] __attribute__((aligned(16)));
static void *base[4];
static uint32_t fresh[1];
static void *pointers[5];

static void start(struct crt_graph *g, const struct crt_model *m)
{
    static const uint8_t x[ROWS] = {1, 2, 3, 4, 5, 6, 7};
    struct crt_region region;

    memset(g, 0, sizeof *g);
    region.ptr = arena;
    region.bytes = ARENA;
    memset(arena, 0x55, sizeof arena);
    EXPECT(crt_graph_init(g, m, base, fresh, &region, 1) == CRT_OK);
    EXPECT(crt_graph_set_input(g, 0, x, ROWS) == CRT_OK);
}

/* s: 4 6 9 12 15 18 14; t: 10 21 33 15 */
static void test_values(void)
{
    static const uint8_t y[HALF] = {11, 24, 38, 22};
    struct crt_model m = made();
    struct crt_graph g;
    int again;

    start(&g, &m);
    for (again = 0; again < 2; again++) { /* counters begin anew */
        EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
        EXPECT(memcmp(arena + AT_Y, y, HALF) == 0);
        EXPECT(arena[AT_Z] == 79);
        EXPECT(arena[AT_S + 2] == 0x55 && arena[AT_COUNT + 8] == 0x55);
        EXPECT(g.failed_step == -1);
    }
}

#ifndef CRT_NO_HOOK
struct seen {
    char text[64];
    uint32_t count;
    uint32_t stop;
};

static int look(void *context, uint32_t step, uint32_t first, uint32_t count,
                const void *data)
{
    struct seen *s = (struct seen *)context;

    (void)data;
    EXPECT(count == 1);
    s->text[2 * s->count] = (char)('s' + (int)step);
    s->text[2 * s->count + 1] = (char)('0' + (int)first);
    return ++s->count == s->stop;
}

static void test_order(void)
{
    struct crt_model m = made();
    struct crt_graph g;
    struct seen s = {"", 0, 0};

    start(&g, &m);
    EXPECT(crt_graph_set_hook(&g, look, &s) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    /* s t z(as u) y(as v): each row as late as its readers allow; z at last */
    EXPECT(strcmp(s.text, "s0s1t0v0s2s3t1v1s4s5t2v2s6t3v3u0") == 0);
}

static void test_stops(void)
{
    struct crt_model m = made();
    struct crt_graph g;
    struct seen s = {"", 0, 7};

    start(&g, &m);
    EXPECT(crt_graph_set_hook(&g, look, &s) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_STOPPED);
    EXPECT(s.count == 7 && g.failed_step == 1);
    s.stop = 0;
    EXPECT(crt_graph_run_stage(&g, pointers, 0) == CRT_OK);
    EXPECT(s.count == 7 + 16 && arena[AT_Z] == 79);
}
#endif

int main(void)
{
    test_values();
#ifndef CRT_NO_HOOK
    test_order();
    test_stops();
#endif
    return failures != 0;
}
