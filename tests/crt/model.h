/* A model written by hand: padding, stride, batch, broadcast, scratch, a ring,
 * a last band that is not full. Two stages, four steps. */
#ifndef TESTS_CRT_MODEL_H
#define TESTS_CRT_MODEL_H

#include "crt/graph.h"

/*   mid[n,r] = sum over k of coef[k] * a[n, r - 1 + k]   (rows outside are 5)
 *   y[n,r]   = mid[n, 2 r] + b
 *   z        = mid in a ring of two rows
 *   w[r]     = mid[0, r] for three rows, two at a time */
#define COLS        3
#define ROWS        4
#define IMAGES      2
#define ARENA_BYTES 80u
#define KEPT_BYTES  4u

static const int8_t five[COLS] = {5, 5, 5};
static const int8_t coef[3] = {1, 2, -1};
static const void *const coefs[] = {coef};
static const int32_t cols_arg[] = {COLS};

/* p: out, in x3, coef, scratch; the sum is built up in scratch. */
static void sum3(void *const *p, const int32_t *a)
{
    int8_t *out = (int8_t *)p[0];
    const int8_t *c = (const int8_t *)p[4];
    int32_t *acc = (int32_t *)p[5];
    int32_t i;
    int32_t k;

    for (i = 0; i < a[0]; i++) {
        acc[i] = 0;
        for (k = 0; k < 3; k++)
            acc[i] += c[k] * ((const int8_t *)p[1 + k])[i];
        out[i] = (int8_t)acc[i];
    }
}

/* p: out, x, b */
static void add(void *const *p, const int32_t *a)
{
    int32_t i;

    for (i = 0; i < a[0]; i++)
        ((int8_t *)p[0])[i] =
            (int8_t)(((const int8_t *)p[1])[i] + ((const int8_t *)p[2])[i]);
}

/* p: out, x */
static void copy(void *const *p, const int32_t *a)
{
    int32_t i;

    for (i = 0; i < a[0]; i++)
        ((int8_t *)p[0])[i] = ((const int8_t *)p[1])[i];
}

/* p: out x2, x x2; the second row of the last band is outside: NULL */
static void copy2(void *const *p, const int32_t *a)
{
    void *second[2];

    second[0] = p[0];
    second[1] = p[2];
    copy(second, a);
    second[0] = p[1];
    second[1] = p[3];
    if (second[0] != NULL)
        copy(second, a);
}

/* buffers: 0 arena, 1 kept, 2 a, 3 b, 4 y, 5 z, 6 w */
/* pad_row, row_bytes, count, ring, window, stride, pad */
static const struct crt_rows met[] = {{NULL, COLS, ROWS, ROWS, 1, 1, 0},
                                      {five, COLS, ROWS, ROWS, 3, 1, 1},
                                      {NULL, 0, 1, 1, 1, 0, 0},
                                      {NULL, COLS, ROWS / 2, ROWS / 2, 1, 1, 0},
                                      {NULL, COLS, ROWS, ROWS, 1, 2, 0},
                                      {NULL, COLS, ROWS, 2, 1, 1, 0},
                                      {NULL, COLS, 3, 3, 2, 2, 0},
                                      {NULL, COLS, ROWS, ROWS, 2, 2, 0}};
/* at, buffer, rows */
static const struct crt_operand sum3_operands[] = {
    {24, 0, 0}, {0, 2, 1}, {64, 0, 2}};
static const struct crt_operand add_operands[] = {
    {0, 4, 3}, {24, 0, 4}, {0, 3, 2}};
static const struct crt_operand ring_operands[] = {{0, 5, 5}, {24, 0, 0}};
static const struct crt_operand pair_operands[] = {{0, 6, 6}, {24, 0, 7}};

static const struct crt_step steps[] = {
    {sum3, cols_arg, coefs, sum3_operands, IMAGES, ROWS, 1, 1, 1, 1},
    {add, cols_arg, NULL, add_operands, IMAGES, ROWS / 2, 1, 2, 0, 0},
    {copy, cols_arg, NULL, ring_operands, IMAGES, ROWS, 1, 1, 0, 0},
    {copy2, cols_arg, NULL, pair_operands, 1, 2, 1, 1, 0, 0}};
static const struct crt_stage stages[] = {{0, 1, 0, 0}, {1, 3, 0, 0}};

static const int32_t dims_a[] = {IMAGES, ROWS, COLS};
static const int32_t dims_y[] = {IMAGES, ROWS / 2, COLS};
static const int32_t dims_z[] = {2, COLS};
static const int32_t dims_w[] = {3, COLS};

/* name, dims, scale, zero_point, bytes, at, align, region, dtype, rank, flags;
 * y takes the memory of a */
static const struct crt_tensor tensors[] = {
    {"a", dims_a, 0.5f, 5, 24, 0, 4, 0, CRT_INT8, 3, CRT_TENSOR_CONSUMED},
    {"b", dims_z + 1, 0.5f, 0, 3, 0, 1, 1, CRT_INT8, 1, 0},
    {"y", dims_y, 0.5f, 0, 12, 0, 4, 0, CRT_INT8, 3, 0},
    {"z", dims_z, 0.5f, 0, 6, 48, 1, 0, CRT_INT8, 2, 0},
    {"why", dims_w, 0.5f, 0, 9, 54, 1, 0, CRT_INT8, 2, 0}};

static const uint32_t region_bytes[] = {ARENA_BYTES, KEPT_BYTES};

/* stages, steps, inputs, outputs, parameters, pointers, align, regions,
 * devices */
static const struct crt_model model = {
    CRT_ABI, "two", stages, steps, tensors, NULL, region_bytes,
    NULL,    NULL,  NULL,   NULL,  NULL,    NULL, 0,
    2,       4,     2,      3,     0,       6,    16,
    2,       1,     met,    NULL};

#endif
