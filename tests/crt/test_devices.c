/* Graphs over devices, on the one of mixed.h, with a failure of each call of a
 * device. Prints each failed line; exit code 1 if there was one. */
#include "crt/weights.h"
#include "image.h"
#include "mixed.h"

static int8_t arena[64] __attribute__((aligned(16)));
static struct fake fakes[2];
static struct crt_device devices[4];
static void *base[CRT_BASE_COUNT(3, 2, 3, 1, 4)];
static uint32_t fresh[1];
static void *pointers[4];
static const int8_t x[N] = {1, 2, 3, 4};
static const int8_t d[N] = {10, 20, 30, 40};
static const int8_t w[N] = {5, 0, -5, 7};

static void start_without_devices(struct crt_graph *g)
{
    struct crt_region regions[3];
    int i;

    memset(fakes, 0, sizeof fakes);
    memset(devices, 0, sizeof devices);
    regions[0].ptr = arena;
    regions[0].bytes = sizeof arena;
    for (i = 0; i < 2; i++) {
        fakes[i].first = 0x100u * (1u + (uintptr_t)i);
        fakes[i].fails_at = -1;
        regions[1 + i].ptr = (void *)fakes[i].first;
        regions[1 + i].bytes = DEVICE_BYTES;
        devices[1 + i].api = &api;
        devices[1 + i].context = &fakes[i];
    }
    EXPECT(sizeof base / sizeof *base >= BASES);
    memset(arena, 0x55, sizeof arena);
    EXPECT(crt_graph_init(g, &model, base, fresh, regions, 3) == CRT_OK);
}

static void start(struct crt_graph *g)
{
    start_without_devices(g);
    EXPECT(crt_graph_set_devices(g, devices, 4) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(g, 0, w, N) == CRT_OK);
    EXPECT(crt_graph_set_input(g, 1, d, N) == CRT_OK);
    EXPECT(crt_graph_set_input(g, 0, x, N) == CRT_OK);
}

static void expect_right(struct crt_graph *g)
{
    int8_t e[N];
    int8_t y[N];
    int8_t z[N];
    int i;

    EXPECT(crt_graph_get_output(g, 0, e, N) == CRT_OK);
    EXPECT(crt_graph_get_output(g, 1, y, N) == CRT_OK);
    EXPECT(crt_graph_get_output(g, 2, z, N) == CRT_OK);
    for (i = 0; i < N; i++) {
        EXPECT(e[i] == x[i] + d[i] + w[i]);
        EXPECT(y[i] == 2 * e[i] + 1 && z[i] == y[i]);
    }
}

/* @req crt_graph_output:Errors, crt_graph_input:Errors, crt_step_run */
static void test_run(void)
{
    struct crt_graph g;

    start(&g);
    EXPECT(memcmp(fakes[0].memory + 48, w, N) == 0);
    EXPECT(memcmp(fakes[0].memory + 32, d, N) == 0);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(fakes[0].queued == 0 && fakes[1].queued == 0);
    EXPECT(fakes[0].launched == 1 && fakes[1].launched == 1);
    expect_right(&g);
    EXPECT(crt_graph_input(&g, 1) == NULL); /* on a device */
    EXPECT(crt_graph_output(&g, 0) == NULL);
    EXPECT(crt_graph_output(&g, 1) == arena + 48);
    EXPECT(crt_graph_parameter(&g, 0) == (void *)(fakes[0].first + 48));
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_CONSUMED);
    EXPECT(crt_graph_set_input(&g, 0, x, N) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    expect_right(&g);
    /* another place on the same device, for an output that lives there */
    EXPECT(crt_graph_bind_output(&g, 0, (void *)(fakes[0].first + 64), N) ==
           CRT_OK);
    EXPECT(crt_graph_set_input(&g, 0, x, N) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(fakes[0].memory[64] == x[0] + d[0] + w[0]);
    expect_right(&g);
}

/* Between two stages nothing goes on. */
static void test_stages(void)
{
    struct crt_graph g;
    uint32_t i;

    start(&g);
    for (i = 0; i < STEPS; i++) {
        EXPECT(crt_graph_run_stage(&g, pointers, i) == CRT_OK);
        EXPECT(fakes[0].queued == 0 && fakes[1].queued == 0);
    }
    expect_right(&g);
}

/* A run as a whole waits only where its steps say so, and once at the end. */
static void test_waits_are_few(void)
{
    struct crt_graph g;

    start(&g);
    fakes[0].waits = fakes[1].waits = 0;
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    EXPECT(fakes[0].waits == 2 && fakes[1].waits == 2);
}

static void test_devices_are_checked(void)
{
    static uint8_t empty[IMAGE_BYTES] __attribute__((aligned(16)));
    static const uint8_t cpu[8] = {0};
    struct crt_device other[4];
    struct crt_params none;
    struct crt_model near;
    struct crt_graph g;
    struct crt_graph never;

    image_write(empty, NULL, 0);
    EXPECT(crt_params_verify(&none, empty, sizeof empty) == CRT_OK);
    memset(&never, 0, sizeof never);
    start_without_devices(&g);
    EXPECT(crt_graph_setup(&g) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_set_input(&g, 1, d, N) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_bind_parameter(&g, 0, w, N) == CRT_ERR_DEVICE);
    near = model; /* whose parameters the CPU could reach alone */
    near.region_devices = cpu;
    g.model = &near;
    EXPECT(crt_graph_bind_parameter(&g, 0, w, N) == CRT_ERR_DEVICE);
    g.model = &model;
    EXPECT(crt_graph_load_params(&g, &none) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_share_params(&g, &g, NULL) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_share_parameter(&g, 0, &g, 0) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_set_devices(&never, devices, 4) == CRT_ERR_NULL);
    EXPECT(crt_graph_set_devices(&g, NULL, 4) == CRT_ERR_NULL);
    EXPECT(crt_graph_set_devices(&g, devices, 3) == CRT_ERR_DEVICE);
    memcpy(other, devices, sizeof other);
    other[0].api = &api; /* must be the CPU */
    EXPECT(crt_graph_set_devices(&g, other, 4) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_set_devices(&g, devices, 4) == CRT_OK);
    EXPECT(crt_graph_setup(&g) == CRT_ERR_UNBOUND);
    EXPECT(crt_graph_load_params(&g, &none) == CRT_ERR_NAME);
}

/* A step of the runtime's own is none for a device. */
/* @req crt_step_run:CRT_ERR_TASK, crt_step_run:CRT_ERR_INDEX */
static void test_steps_alone(void)
{
    struct crt_graph g;
    uint32_t i;

    start(&g);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    for (i = 0; i < STEPS; i++) {
        if (steps[i].kernel == NULL)
            EXPECT(crt_step_run(&model, i, base, pointers) == CRT_ERR_TASK);
    }
    EXPECT(crt_step_run(&model, 8, base, pointers) == CRT_OK); /* y = v + 1 */
    EXPECT(crt_step_run(&model, STEPS, base, pointers) == CRT_ERR_INDEX);
    expect_right(&g);
}

#ifndef CRT_NO_OVERLAP
/* Addresses of a device are compared with those of its own memory alone. */
static void test_places_on_devices(void)
{
    void *there = (void *)0x108;
    struct crt_turn turn;
    struct crt_graph g;

    start(&g);
    EXPECT((uintptr_t)there == fakes[0].first + 8);
    EXPECT(crt_graph_bind_output(&g, 0, there, N) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_output(&g, 1, there, N) == CRT_OK); /* the CPU's */
    EXPECT(crt_graph_bind_output(&g, 1, NULL, 0) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 1, arena + 8, N) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_output(&g, 0, arena + 8, N) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 0, NULL, 0) == CRT_OK);
    /* only memory of the CPU's is shared */
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&g, &turn) == CRT_OK);
    EXPECT(turn.memory[0].ptr == arena && turn.memory[1].ptr == NULL);
    EXPECT(crt_graph_bind_output(&g, 1, there, N) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 0, arena + 8, N) == CRT_OK);
    /* the CPU does the work of device 1: one memory */
    start_without_devices(&g);
    EXPECT(crt_graph_bind_output(&g, 1, there, N) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 1, NULL, 0) == CRT_OK);
    devices[1].api = NULL;
    EXPECT(crt_graph_set_devices(&g, devices, 4) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 1, there, N) == CRT_ERR_OVERLAP);
    EXPECT(crt_graph_bind_output(&g, 0, arena + 8, N) == CRT_ERR_OVERLAP);
    EXPECT(crt_turn_init(&turn) == CRT_OK);
    EXPECT(crt_graph_share_storage(&g, &turn) == CRT_OK);
    EXPECT(crt_graph_bind_output(&g, 0, arena + 8, N) == CRT_ERR_OVERLAP);
}
#endif

/* A model that has no devices takes a table of the CPU alone, and needs none.
 */
static void test_model_without_devices(void)
{
    static const struct crt_device cpu = {NULL, NULL};
    static int8_t more[2][DEVICE_BYTES] __attribute__((aligned(16)));
    struct crt_model plain = model;
    struct crt_region regions[3];
    struct crt_graph g;
    uint32_t i;

    plain.accelerator = NULL;
    plain.device_count = 1;
    plain.region_devices = NULL;
    for (i = 0; i < 3; i++) {
        regions[i].ptr = i == 0 ? arena : more[i - 1];
        regions[i].bytes = DEVICE_BYTES;
    }
    EXPECT(crt_graph_init(&g, &plain, base, fresh, regions, 3) == CRT_OK);
    EXPECT(crt_graph_set_devices(&g, &cpu, 1) == CRT_OK);
    EXPECT(crt_graph_set_devices(&g, devices, 4) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_setup(&g) == CRT_ERR_UNBOUND);
}

/* All names are for the CPU: one memory, the same answers. */
static void test_without_a_device(void)
{
    static int8_t more[2][DEVICE_BYTES] __attribute__((aligned(16)));
    struct crt_region regions[3];
    struct crt_graph g;
    int i;

    start_without_devices(&g);
    memset(devices, 0, sizeof devices);
    regions[0].ptr = arena;
    regions[0].bytes = sizeof arena;
    for (i = 0; i < 2; i++) {
        regions[1 + i].ptr = more[i];
        regions[1 + i].bytes = DEVICE_BYTES;
    }
    EXPECT(crt_graph_init(&g, &model, base, fresh, regions, 3) == CRT_OK);
    EXPECT(crt_graph_set_devices(&g, devices, 4) == CRT_OK);
    EXPECT(crt_graph_bind_parameter(&g, 0, w, N) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 1, d, N) == CRT_OK);
    EXPECT(crt_graph_set_input(&g, 0, x, N) == CRT_OK);
    EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
    expect_right(&g);
}

/* Each call that a run makes fails once, on each device: always an error, never
 * something left behind, and the next run is right. */
static void test_failures_in_runs(void)
{
    struct crt_graph g;
    int8_t y[N];
    int device;
    int at;

    for (device = 0; device < 2; device++) {
        for (at = 0; at < 5;
             at++) { /* in, launch, out, wait, wait at the end */
            start(&g);
            fakes[device].fails_at = at;
            EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_DEVICE);
            EXPECT(g.failed_step == (at < 4 ? 4 * device + at : -1));
            EXPECT(fakes[0].queued == 0 && fakes[1].queued == 0);
            EXPECT(crt_graph_get_output(&g, 1, y, N) == CRT_ERR_NO_OUTPUT);
            EXPECT(crt_graph_set_input(&g, 0, x, N) == CRT_OK);
            EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
            EXPECT(g.failed_step == -1);
            expect_right(&g);
        }
    }
    start(&g); /* a step fails, then the wait after it: the step is told */
    fakes[0].fails_at = 0;
    fakes[1].fails_at = 0;
    EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_DEVICE && g.failed_step == 0);
    start(&g);
    EXPECT(crt_graph_run_stage(&g, pointers, 0) == CRT_OK);
    fakes[1].fails_at = 0; /* in the wait after the stage */
    EXPECT(crt_graph_run_stage(&g, pointers, 1) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_run_stage(&g, pointers, 2) == CRT_ERR_STAGE);
}

static void test_failures_around_runs(void)
{
    struct crt_graph g;
    int8_t e[N];
    int at;

    for (at = 0; at < 2; at++) { /* the copy, and the wait for it */
        start(&g);
        fakes[0].fails_at = at;
        EXPECT(crt_graph_set_input(&g, 1, x, N) == CRT_ERR_DEVICE);
        EXPECT(crt_graph_run(&g, pointers) == CRT_ERR_INPUT_MISSING);
        EXPECT(crt_graph_set_input(&g, 1, d, N) == CRT_OK);
        EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
        expect_right(&g);
        fakes[0].fails_at = at;
        EXPECT(crt_graph_get_output(&g, 0, e, N) == CRT_ERR_DEVICE);
        expect_right(&g);
        fakes[0].fails_at = at;
        EXPECT(crt_graph_bind_parameter(&g, 0, x, N) == CRT_ERR_DEVICE);
        EXPECT(crt_graph_parameter(&g, 0) == NULL); /* not half of it */
        EXPECT(crt_graph_setup(&g) == CRT_ERR_UNBOUND);
    }
}

/* A parameter on a device is copied from the image, never from the donor's
 * place on its device; if that is the sharer's place too, not at all. */
static void test_sharing(void)
{
    static uint8_t memory[IMAGE_BYTES] __attribute__((aligned(IMAGE_ALIGN)));
    static void *base2[CRT_BASE_COUNT(3, 2, 3, 1, 4)];
    struct entry entry = {"w", CRT_INT8, 1, {N, 0}, 0, 0, 1, N, w};
    struct crt_device swapped[4];
    struct crt_region regions[3];
    struct crt_params image;
    struct crt_graph donor;
    struct crt_graph g;
    uint32_t fresh2[1];
    int turn;

    image_write(memory, &entry, 1);
    EXPECT(crt_params_verify(&image, memory, IMAGE_BYTES) == CRT_OK);
    for (turn = 0; turn < 2; turn++) {
        start(&donor);
        memcpy(swapped, devices, sizeof swapped);
        swapped[1] = devices[1 + turn];
        swapped[2] = devices[2 - turn];
        regions[0].ptr = arena;
        regions[1].ptr = (void *)fakes[turn].first;
        regions[2].ptr = (void *)fakes[1 - turn].first;
        regions[0].bytes = regions[1].bytes = regions[2].bytes = DEVICE_BYTES;
        EXPECT(crt_graph_init(&g, &model, base2, fresh2, regions, 3) == CRT_OK);
        EXPECT(crt_graph_set_devices(&g, swapped, 4) == CRT_OK);
        /* without an image the CPU has no bytes to copy */
        EXPECT(crt_graph_share_params(&g, &donor, NULL) == CRT_ERR_UNBOUND);
        EXPECT(crt_graph_load_params(&donor, &image) == CRT_OK);
        fakes[turn].waits = 0;
        fakes[turn].fails_at = 0;
        EXPECT(crt_graph_share_params(&g, &donor, NULL) ==
               (turn == 0 ? CRT_OK : CRT_ERR_DEVICE));
        EXPECT(image.users == (turn == 0 ? 2 : 1));
        fakes[turn].fails_at = -1;
        EXPECT(crt_graph_share_params(&g, &donor, NULL) == CRT_OK);
        EXPECT(fakes[turn].waits == (uint32_t)turn && image.users == 2);
        EXPECT(memcmp(fakes[turn].memory + 48, w, N) == 0);
        EXPECT(crt_graph_release_params(&donor) == CRT_OK);
        EXPECT(crt_graph_set_input(&g, 0, x, N) == CRT_OK);
        EXPECT(crt_graph_set_input(&g, 1, d, N) == CRT_OK);
        EXPECT(crt_graph_run(&g, pointers) == CRT_OK);
        expect_right(&g);
        EXPECT(crt_graph_release_params(&g) == CRT_OK);
    }
    EXPECT(crt_params_close(&image) == CRT_OK);
}

/* A lazy input is where it was bound, whoever's its region is. */
static void test_lazy_input(void)
{
    struct crt_tensor late[sizeof tensors / sizeof tensors[0]];
    struct crt_model lazy = model;
    struct crt_region regions[3];
    struct crt_graph g;
    int i;

    memcpy(late, tensors, sizeof tensors);
    late[1].flags = CRT_TENSOR_LAZY;
    lazy.tensors = late;
    for (i = 0; i < 3; i++) {
        regions[i].ptr = i == 0 ? (void *)arena : (void *)fakes[i - 1].first;
        regions[i].bytes = DEVICE_BYTES;
    }
    EXPECT(crt_graph_init(&g, &lazy, base, fresh, regions, 3) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, d, N) == CRT_OK);
    EXPECT(crt_graph_input(&g, 1) == (const void *)d);
}

/* Parameters that no device has: lazy ones, and those of the CPU. */
static void test_sharing_where_the_cpu_is(void)
{
    static void *base2[CRT_BASE_COUNT(3, 2, 3, 1, 4)];
    struct crt_tensor own[sizeof tensors / sizeof tensors[0]];
    struct crt_model m = model;
    struct crt_region regions[3];
    struct crt_graph donor;
    struct crt_graph g;
    uint32_t fresh2[1];
    int turn;

    m.tensors = own;
    for (turn = 0; turn < 2; turn++) {
        start(&donor);
        memcpy(own, tensors, sizeof own);
        own[5].flags = turn == 0 ? CRT_TENSOR_LAZY : 0;
        own[5].region = 0;
        regions[0].ptr = arena;
        regions[1].ptr = (void *)fakes[0].first;
        regions[2].ptr = (void *)fakes[1].first;
        regions[0].bytes = regions[1].bytes = regions[2].bytes = DEVICE_BYTES;
        EXPECT(crt_graph_init(&donor, &m, base, fresh, regions, 3) == CRT_OK);
        EXPECT(crt_graph_set_devices(&donor, devices, 4) == CRT_OK);
        EXPECT(crt_graph_init(&g, &m, base2, fresh2, regions, 3) == CRT_OK);
        EXPECT(crt_graph_set_devices(&g, devices, 4) == CRT_OK);
        EXPECT(crt_graph_share_params(&g, &donor, NULL) == CRT_ERR_UNBOUND);
        EXPECT(crt_graph_bind_parameter(&donor, 0, w, N) == CRT_OK);
        EXPECT(crt_graph_share_params(&g, &donor, NULL) == CRT_OK);
        EXPECT(memcmp(crt_graph_parameter(&g, 0), w, N) == 0);
    }
}

/* @req weights.h:CRT_ERR_DEVICE */
static void test_failure_in_load(void)
{
    static uint8_t memory[IMAGE_BYTES] __attribute__((aligned(IMAGE_ALIGN)));
    struct entry entry = {"w", CRT_INT8, 1, {N, 0}, 0, 0, 1, N, w};
    struct crt_params image;
    struct crt_graph g;

    image_write(memory, &entry, 1);
    EXPECT(crt_params_verify(&image, memory, IMAGE_BYTES) == CRT_OK);
    start(&g);
    fakes[0].fails_at = 0;
    EXPECT(crt_graph_load_params(&g, &image) == CRT_ERR_DEVICE);
    EXPECT(crt_graph_load_params(&g, &image) == CRT_OK);
    EXPECT(image.users == 1);
}

int main(void)
{
    test_run();
    test_stages();
    test_waits_are_few();
    test_devices_are_checked();
    test_steps_alone();
#ifndef CRT_NO_OVERLAP
    test_places_on_devices();
#endif
    test_model_without_devices();
    test_without_a_device();
    test_failures_in_runs();
    test_failures_around_runs();
    test_sharing();
    test_sharing_where_the_cpu_is();
    test_lazy_input();
    test_failure_in_load();
    return failures != 0;
}
