/* Three steps in lock step, by hand: order, rings, what a hook sees. */
#include "rings.h"

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

/* Of no steps there is nothing to do. */
static void test_nothing(void)
{
    static const struct crt_stage none[] = {{0, 0, 0, 1}};
    struct crt_model m = made();
    struct crt_graph g;

    m.stages = none;
    start(&g, &m);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(arena[AT_S] == 0x55);
}

int main(void)
{
    test_values();
    test_nothing();
#ifndef CRT_NO_HOOK
    test_order();
    test_stops();
#endif
    return failures != 0;
}
