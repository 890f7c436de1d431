/* What cannot be bound, as runs write over it: on the model of model.h. Prints
 * each failed line; exit code 1 if there was one. */
#include "expect.h"
#include "model.h"

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

#ifndef CRT_NO_OVERLAP
/* What runs write over cannot be bound: it would be another value by then. */
/* @req crt_graph_bind_input:CRT_ERR_OVERLAP
 * @req crt_graph_bind_output:CRT_ERR_OVERLAP, config.h:CRT_NO_OVERLAP */
static void test_overlap(void)
{
    static int8_t room[ARENA_BYTES + 64] __attribute__((aligned(16)));
    static const uint32_t nothing[] = {ARENA_BYTES, 0};
    struct crt_region own[2] = {{room + 32, ARENA_BYTES}, {kept, KEPT_BYTES}};
    struct crt_tensor late[5];
    struct crt_model m = model;
    struct crt_graph g;
    uint32_t at;

    start(&g);
    memcpy(late, tensors, sizeof late);
    m.tensors = late;
    EXPECT(crt_graph_init(&g, &m, base, fresh, own, 2) == CRT_OK);
    for (at = 0; at <= ARENA_BYTES + 40u; at += 4) {
        int is_in = at > 8u && at < 32u + ARENA_BYTES;
        int is_out = at > 20u && at < 32u + ARENA_BYTES;

        if (at == 32u) /* home */
            is_in = is_out = 0;
        EXPECT(crt_graph_bind_input(&g, 0, room + at, 24) ==
               (is_in ? CRT_ERR_OVERLAP : CRT_OK));
        EXPECT(crt_graph_bind_output(&g, 0, room + at, 12) ==
               (is_out ? CRT_ERR_OVERLAP : CRT_OK));
    }
    EXPECT(crt_graph_bind_input(&g, 0, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 0, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, kept + 1, 3) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_input(&g, 1, kept + KEPT_BYTES, 3) == CRT_OK);
    /* where runs only read: the home of an input that they keep */
    EXPECT(crt_graph_bind_input(&g, 1, room + 36, 3) == CRT_ERR_OVERLAP);
    late[0].flags = 0;
    EXPECT(crt_graph_bind_input(&g, 1, room + 36, 3) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, room + 32 + 21, 3) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, room + 32 + 22, 3) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_output(&g, 0, room + 36, 12) == CRT_ERR_OVERLAP);
    late[0].flags = CRT_TENSOR_LAZY;
    EXPECT(crt_graph_bind_input(&g, 1, room + 36, 3) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_input(&g, 0, room + 32, 24) == CRT_ERR_OVERLAP);
    /* what is refused changes nothing */
    late[0].flags = CRT_TENSOR_CONSUMED;
    EXPECT(crt_graph_init(&g, &m, base, fresh, own, 2) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 0, room + 36, 24) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_output(&g, 0, room + 36, 12) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    expect_y(room + 32);
    /* a region of no bytes is nowhere */
    m.region_bytes = nothing;
    own[1].ptr = room;
    EXPECT(crt_graph_init(&g, &m, base, fresh, own, 2) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 0, room, 24) == CRT_OK);
}
#endif

int main(void)
{
    struct crt_graph g;

    start(&g);
    EXPECT(crt_graph_bind_input(&g, 0, a, 24) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, b, 3) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    expect_y((const int8_t *)crt_graph_output(&g, 0));
#ifndef CRT_NO_OVERLAP
    test_overlap();
#endif
    return failures != 0;
}
