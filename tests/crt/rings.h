/* rings.h: a model of three steps in lock step, by hand, with its memory; and a
 * hook that writes down what it sees, and may stop the run. */
#ifndef RINGS_H
#define RINGS_H

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

/* pad_row, row_bytes, count, ring, window, stride, pad */
static const struct crt_rows met[] = {
    {NULL, 1, ROWS, 2, 1, 1, 0},    {one, 1, ROWS, ROWS, 3, 1, 1},
    {NULL, 1, HALF, HALF, 1, 1, 0}, {one, 1, ROWS, 2, 2, 2, 0},
    {NULL, 1, ROWS, ROWS, 1, 2, 0}, {NULL, 0, 1, 1, 1, 0, 0},
    {NULL, 1, HALF, HALF, 4, 0, 0}, {NULL, 1, ROWS, ROWS, 1, 1, 0},
    {one, 1, ROWS, 2, 2, 1, 0},     {NULL, 1, ROWS, ROWS, ROWS, 0, 0},
    {NULL, 1, ROWS, 1, 1, 1, 0}};
/* at, buffer, rows; buffers: 0 arena, 1 x, 2 y, 3 z */
static const struct crt_operand of_s[] = {{AT_S, 0, 0}, {0, 1, 1}};
static const struct crt_operand of_t[] = {{AT_T, 0, 2}, {AT_S, 0, 3}};
static const struct crt_operand of_y[] = {{0, 2, 2}, {AT_T, 0, 2}, {0, 1, 4}};
static const struct crt_operand of_z[] = {{0, 3, 5}, {AT_T, 0, 6}};

static const struct crt_step steps[] = {
    {sum, terms, NULL, of_s, 1, ROWS, 1, 1, 0, 0},
    {sum, terms + 1, NULL, of_t, 1, HALF, 1, 1, 0, 0},
    {sum, terms + 2, NULL, of_z, 1, 1, 1, 1, 0, 0},
    {sum, terms + 1, NULL, of_y, 1, HALF, 1, 2, 0, 0}};
static const struct crt_stage stages[] = {{0, 4, 0, 1}};
static const struct crt_link links[] = {{0, 0, 0, 0, 0, 0, 0},
                                        {4, 2, 1, 1, HALF, 1, 0},
                                        {3, 2, 0, HALF, HALF, 1, 0},
                                        {2, 1, 2, 2, ROWS, 1, 1},
                                        {0, 0, 0, 0, 0, 0, 0}};

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
    m.rows = met;
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
#endif

#endif
