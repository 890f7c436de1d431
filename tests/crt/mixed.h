/* A graph over the CPU and two devices of one type whose memory the CPU cannot
 * touch, and which do nothing before they are waited for. */
#ifndef TESTS_CRT_MIXED_H
#define TESTS_CRT_MIXED_H

#include "crt/device.h"
#include "crt/graph.h"
#include "expect.h"

#include <string.h>

/* ---- the device ---------------------------------------------------------- */

/* what the model has there, and all that there is */
enum { DEVICE_BYTES = 64, MOST_BYTES = 80, QUEUE = 16, BASES = 9, N = 4 };
enum call { COPY_IN, COPY_OUT, LAUNCH, WAIT, CALLS };

struct command {
    enum call call;
    void *to;
    const void *from;
    uint32_t bytes;
    const struct crt_model *model;
    uint32_t step;
    void *const *base;
};

/* Addresses on a device count from `first`: no memory of the CPU is there. */
struct fake {
    uintptr_t first;
    int8_t memory[MOST_BYTES];
    struct command queue[QUEUE];
    uint32_t queued;
    uint32_t launched;
    uint32_t waits;
    int fails_at; /* call number from now on; -1: never */
    int fails_late;
};

static int is_good(struct fake *d)
{
    return d->fails_at < 0 || d->fails_at-- != 0;
}

static int is_here(const struct fake *d, const void *address)
{
    return (uintptr_t)address >= d->first &&
           (uintptr_t)address < d->first + MOST_BYTES;
}

static void *real(struct fake *d, const void *address)
{
    return is_here(d, address) ? d->memory + ((uintptr_t)address - d->first)
                               : (void *)address;
}

static int enqueue(struct fake *d, struct command command)
{
    if (!is_good(d))
        return 1;
    EXPECT(d->queued < QUEUE);
    d->queue[d->queued++] = command;
    return 0;
}

static int copy_in(void *context, void *to, const void *from, uint32_t bytes)
{
    struct command c = {COPY_IN, to, from, bytes, NULL, 0, NULL};

    EXPECT(is_here((struct fake *)context, to));
    EXPECT(!is_here((struct fake *)context, from));
    return enqueue((struct fake *)context, c);
}

static int copy_out(void *context, void *to, const void *from, uint32_t bytes)
{
    struct command c = {COPY_OUT, to, from, bytes, NULL, 0, NULL};

    EXPECT(!is_here((struct fake *)context, to));
    EXPECT(is_here((struct fake *)context, from));
    return enqueue((struct fake *)context, c);
}

static int launch(void *context, const struct crt_model *model, uint32_t step,
                  void *const *base)
{
    struct command c = {LAUNCH, NULL, NULL, 0, model, step, base};

    return enqueue((struct fake *)context, c);
}

static void run_on(struct fake *d, const struct command *c)
{
    void *base[BASES];
    void *pointers[4];
    uint32_t i;

    for (i = 0; i < BASES; i++)
        base[i] = real(d, c->base[i]);
    EXPECT(crt_step_run(c->model, c->step, base, pointers) == CRT_OK);
    d->launched++;
}

static int wait(void *context)
{
    struct fake *d = (struct fake *)context;
    uint32_t i;

    d->waits++;
    for (i = 0; i < d->queued; i++) {
        const struct command *c = &d->queue[i];

        if (c->call == LAUNCH)
            run_on(d, c);
        else
            memcpy(real(d, c->to), real(d, c->from), c->bytes);
    }
    d->queued = 0;
    return is_good(d) ? 0 : 1;
}

static const struct crt_device_api api = {copy_in, copy_out, launch, wait};

/* ---- the graph ----------------------------------------------------------- */

/*   on device 1:  e = x + d + w       (d, w and e live there, x is copied)
 *   on device 2:  v = e + e
 *   on device 3, a name for the CPU:   y = v + one
 *   z = y, copied by the CPU */
static void add(void *const *p, const int32_t *a)
{
    int32_t i;

    for (i = 0; i < a[0]; i++)
        ((int8_t *)p[0])[i] =
            (int8_t)(((const int8_t *)p[1])[i] + ((const int8_t *)p[2])[i]);
}

static void add3(void *const *p, const int32_t *a)
{
    int32_t i;

    add(p, a);
    for (i = 0; i < a[0]; i++)
        ((int8_t *)p[0])[i] =
            (int8_t)(((int8_t *)p[0])[i] + ((const int8_t *)p[3])[i]);
}

/* buffers: 0 CPU, 1 and 2 devices, 3 x, 4 d, 5 e, 6 y, 7 z, 8 w */
/* pad_row, row_bytes, count, ring, window, stride, pad */
static const struct crt_rows met[] = {{NULL, 0, 1, 1, 1, 0, 0}};
#define AT(buffer, at) {at, buffer, 0}
static const struct crt_operand x_in[] = {AT(1, 16), AT(3, 0)};
static const struct crt_operand sum[] = {AT(5, 0), AT(1, 16), AT(4, 0),
                                         AT(8, 0)};
static const struct crt_operand e_out[] = {AT(0, 16), AT(5, 0)};
static const struct crt_operand e_in[] = {AT(2, 0), AT(0, 16)};
static const struct crt_operand twice[] = {AT(2, 16), AT(2, 0), AT(2, 0)};
static const struct crt_operand v_out[] = {AT(0, 32), AT(2, 16)};
static const struct crt_operand plus_one[] = {AT(6, 0), AT(0, 32)};
static const struct crt_operand y_to_z[] = {AT(7, 0), AT(6, 0)};

static const int32_t length[] = {N};
static const int32_t to_1[] = {CRT_TASK_COPY, 0, 1, N};
static const int32_t from_1[] = {CRT_TASK_COPY, 1, 0, N};
static const int32_t to_2[] = {CRT_TASK_COPY, 0, 2, N};
static const int32_t from_2[] = {CRT_TASK_COPY, 2, 0, N};
static const int32_t from_3[] = {CRT_TASK_COPY, 3, 0, N};
static const int32_t wait_1[] = {CRT_TASK_WAIT, 1};
static const int32_t wait_2[] = {CRT_TASK_WAIT, 2};
static const int32_t wait_3[] = {CRT_TASK_WAIT, 3};
static const int8_t one[N] = {1, 1, 1, 1};
static const void *const ones[] = {one};
static const void *const bound[] = {NULL};

/* kernel, args, constants, operands, images, bands, outputs, inputs, constants,
 * scratch */
static const struct crt_step steps[] = {
    {NULL, to_1, NULL, x_in, 1, 1, 1, 1, 0, 0},
    {add3, length, bound, sum, 1, 1, 1, 2, 1, 0},
    {NULL, from_1, NULL, e_out, 1, 1, 1, 1, 0, 0},
    {NULL, wait_1, NULL, NULL, 1, 1, 0, 0, 0, 0},
    {NULL, to_2, NULL, e_in, 1, 1, 1, 1, 0, 0},
    {add, length, NULL, twice, 1, 1, 1, 2, 0, 0},
    {NULL, from_2, NULL, v_out, 1, 1, 1, 1, 0, 0},
    {NULL, wait_2, NULL, NULL, 1, 1, 0, 0, 0, 0},
    {add, length, ones, plus_one, 1, 1, 1, 1, 1, 0},
    {NULL, from_3, NULL, y_to_z, 1, 1, 1, 1, 0, 0},
    {NULL, wait_3, NULL, NULL, 1, 1, 0, 0, 0, 0}};
enum { STEPS = 11 };
static const struct crt_stage stages[STEPS] = {
    {0, 1, 0, 0}, {1, 1, 1, 0}, {2, 1, 0, 0}, {3, 1, 0, 0},
    {4, 1, 0, 0}, {5, 1, 2, 0}, {6, 1, 0, 0}, {7, 1, 0, 0},
    {8, 1, 3, 0}, {9, 1, 0, 0}, {10, 1, 0, 0}};

static const int32_t dims[] = {N};

/* name, dims, scale, zero_point, bytes, at, align, region, dtype, rank, flags
 */
static const struct crt_tensor tensors[] = {
    {"x", dims, 0, 0, N, 0, 1, 0, CRT_INT8, 1, CRT_TENSOR_CONSUMED},
    {"d", dims, 0, 0, N, 32, 1, 1, CRT_INT8, 1, 0},
    {"e", dims, 0, 0, N, 0, 1, 1, CRT_INT8, 1, 0},
    {"y", dims, 0, 0, N, 48, 1, 0, CRT_INT8, 1, 0},
    {"z", dims, 0, 0, N, 0, 1, 0, CRT_INT8, 1, 0},
    {"w", dims, 0, 0, N, 48, 1, 1, CRT_INT8, 1, 0}};

static const uint32_t layouts[] = {0};
static const uint32_t region_bytes[] = {64, DEVICE_BYTES, DEVICE_BYTES};
static const uint8_t region_devices[] = {0, 1, 2};

static const struct crt_model model = {CRT_ABI,
                                       "mixed",
                                       stages,
                                       steps,
                                       tensors,
                                       layouts,
                                       region_bytes,
                                       region_devices,
                                       NULL,
                                       &crt_accelerator,
                                       NULL,
                                       NULL,
                                       NULL,
                                       0,
                                       STEPS,
                                       STEPS,
                                       2,
                                       3,
                                       1,
                                       4,
                                       16,
                                       3,
                                       4,
                                       met,
                                       NULL};

#endif
