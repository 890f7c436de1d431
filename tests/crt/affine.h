/* A model with parameters written by hand: y = x * w + 2 * b, where 2 is a
 * constant between the two parameters and the sum is built up in scratch. */
#ifndef TESTS_CRT_AFFINE_H
#define TESTS_CRT_AFFINE_H

#include "crt/graph.h"

#define AFFINE_BYTES 48u /* x at 0, y at 16, scratch at 32 */

static const int8_t affine_two[1] = {2};
static const void *const affine_constants[] = {NULL, affine_two, NULL};

/* p: out, x, w, two, b, scratch */
static void affine(void *const *p, const int32_t *a)
{
    int8_t *sum = (int8_t *)p[5];
    int32_t i;

    for (i = 0; i < a[0]; i++) {
        sum[i] =
            (int8_t)(((const int8_t *)p[1])[i] * ((const int8_t *)p[2])[i]);
        ((int8_t *)p[0])[i] = (int8_t)(sum[i] + *(const int8_t *)p[3] *
                                                    ((const int8_t *)p[4])[i]);
    }
}

static const int32_t affine_args[] = {4};

/* buffers: 0 arena, 1 x, 2 y, 3 b, 4 w */
static const struct crt_operand affine_operands[] = {
    {0, 2, 0}, {0, 1, 0}, {0, 4, 0}, {0, 3, 0}, {32, 0, 0}};
static const struct crt_rows affine_rows[] = {{NULL, 0, 1, 1, 1, 0, 0}};
static const struct crt_step affine_steps[] = {
    {affine, affine_args, affine_constants, affine_operands, 1, 1, 1, 1, 3, 1}};
static const struct crt_stage affine_stages[] = {{0, 1, 0, 0}};

static const int32_t affine_dims[] = {2, 2};

/* name, dims, scale, zero_point, bytes, at, align, region, dtype, rank, flags
 */
static const struct crt_tensor affine_tensors[] = {
    {"x", affine_dims, 0, 0, 4, 0, 4, 0, CRT_INT8, 2, 0},
    {"y", affine_dims, 0, 0, 4, 16, 4, 0, CRT_INT8, 2, 0},
    {"b", affine_dims, 0, 0, 4, 0, 4, 0, CRT_INT8, 2, CRT_TENSOR_LAZY},
    {"w", affine_dims, 0, 0, 4, 0, 4, 0, CRT_INT8, 2, CRT_TENSOR_LAZY}};

static const uint32_t affine_layouts[] = {0, 7};
static const uint32_t affine_bytes[] = {AFFINE_BYTES};

/* stages, steps, inputs, outputs, parameters, pointers, align, regions,
 * devices */
static const struct crt_model affine_model = {CRT_ABI,
                                              "affine",
                                              affine_stages,
                                              affine_steps,
                                              affine_tensors,
                                              affine_layouts,
                                              affine_bytes,
                                              NULL,
                                              NULL,
                                              NULL,
                                              NULL,
                                              NULL,
                                              NULL,
                                              0,
                                              1,
                                              1,
                                              1,
                                              1,
                                              2,
                                              6,
                                              16,
                                              1,
                                              1,
                                              affine_rows,
                                              NULL};

enum { AFFINE_BASE = CRT_BASE_COUNT(1, 1, 1, 2, 1) };

/* All that one instance needs. */
struct affine {
    struct crt_graph g;
    void *base[AFFINE_BASE];
    uint32_t fresh[1];
    int8_t arena[AFFINE_BYTES] __attribute__((aligned(16)));
};

static inline int affine_init(struct affine *a, const struct crt_model *model)
{
    struct crt_region region;

    region.ptr = a->arena;
    region.bytes = AFFINE_BYTES;
    return crt_graph_init(&a->g, model, a->base, a->fresh, &region, 1);
}

/* Sets x to 1, 2, 3, 4 times `times`, runs, and gives y. */
static inline int affine_run(struct affine *a, int times, int8_t *y)
{
    void *pointers[6];
    int8_t x[4];
    int i;
    int error;

    for (i = 0; i < 4; i++)
        x[i] = (int8_t)((i + 1) * times);
    error = crt_graph_set_input(&a->g, 0, x, 4);
    if (error == CRT_OK)
        error = crt_graph_run(&a->g, pointers);
    if (error == CRT_OK)
        error = crt_graph_get_output(&a->g, 0, y, 4);
    return error;
}

#endif
