/* What a generated header promises, of tests/golden/conv_int8 and of its builds
 * with parameters and with pushed rows. Prints each failed line; exit code 1 if
 * there was one. */
#include "conv_int8.h"
#include "crt/crc.h"
#include "expect.h"

#include <string.h>

static int8_t arena[CONV_INT8_ARENA_BYTES + 1] __attribute__((aligned(16)));
static int8_t image[CONV_INT8_IMAGE_LEN];
static struct conv_int8 m;

static void start(void)
{
    struct conv_int8_memory memory = CONV_INT8_MEMORY(arena);

    EXPECT(conv_int8_init(&m, &memory) == CRT_OK);
}

static void test_init(void)
{
    struct conv_int8_memory memory = CONV_INT8_MEMORY(arena);

    EXPECT(conv_int8_init(NULL, &memory) == CRT_ERR_NULL);
    EXPECT(conv_int8_init(&m, NULL) == CRT_ERR_NULL);
    memory.arena.bytes = CONV_INT8_ARENA_BYTES - 1;
    EXPECT(conv_int8_init(&m, &memory) == CRT_ERR_REGION);
    memory.arena.bytes = CONV_INT8_ARENA_BYTES;
    memory.arena.ptr = arena + 1;
    EXPECT(conv_int8_init(&m, &memory) == CRT_ERR_ALIGN);
    start();
}

#ifdef CONV_INT8_PARAMS_BYTES

static void test_damage(void)
{
    struct crt_params weights;

    EXPECT(conv_int8_open_params(&weights, NULL) == CRT_ERR_CHECKSUM);
}

/* As the image that the model came with, but one of its arrangements. */
static void test_another_models_image(const uint8_t *own)
{
    static uint8_t other[CONV_INT8_PARAMS_BYTES] __attribute__((aligned(16)));
    struct crt_params weights;
    uint32_t crc;
    int i;

    memcpy(other, own, sizeof other);
    other[40 + 12] ^= 1; /* docs/formats.md: the first parameter's layout */
    crc = crt_crc32(0, other + 8, sizeof other - 8);
    for (i = 0; i < 4; i++)
        other[4 + i] = (uint8_t)(crc >> 8 * i);
    EXPECT(crt_params_verify(&weights, other, sizeof other) == CRT_OK);
    EXPECT(conv_int8_load_params(&m, &weights) == CRT_ERR_LAYOUT);
}

static void test_parameters(void)
{
    static int8_t other_arena[CONV_INT8_ARENA_BYTES]
        __attribute__((aligned(16)));
    struct conv_int8_memory memory = CONV_INT8_MEMORY(other_arena);
    struct conv_int8 other;
    struct crt_params weights;
    int turn;

    EXPECT(CONV_INT8_UNPACKED_BYTES == 0u);
    start();
    EXPECT(conv_int8_open_params(&weights, NULL) == CRT_OK);
    test_another_models_image(weights.image);
    EXPECT(conv_int8_set_image(&m, image) == CRT_OK);
    EXPECT(conv_int8_run(&m) == CRT_ERR_UNBOUND);
    EXPECT(conv_int8_load_params(&m, &weights) == CRT_OK);
    EXPECT(conv_int8_init(&other, &memory) == CRT_OK);
    EXPECT(conv_int8_share_params(&other, &m) == CRT_OK);
    EXPECT(conv_int8_release_params(&m) == CRT_OK);
    EXPECT(conv_int8_run(&m) == CRT_ERR_UNBOUND);
    EXPECT(conv_int8_set_image(&other, image) == CRT_OK);
    EXPECT(conv_int8_run(&other) == CRT_OK);
    EXPECT(crt_params_close(&weights) == CRT_ERR_IN_USE);
    EXPECT(conv_int8_release_params(&other) == CRT_OK);
    for (turn = 0; turn < 2; turn++) { /* again and again */
        start();
        EXPECT(conv_int8_open_params(&weights, NULL) == CRT_OK);
        EXPECT(conv_int8_load_params(&m, &weights) == CRT_OK);
    }
    EXPECT(conv_int8_release_params(&m) == CRT_OK);
    EXPECT(crt_params_close(&weights) == CRT_OK);
}

/* With an argument: the image in flash was damaged. */
int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        test_damage();
        return failures != 0;
    }
    test_init();
    test_parameters();
    return failures != 0;
}

#elif defined CONV_INT8_IMAGE_INPUT

static void test_rows(void)
{
    const uint32_t input = CONV_INT8_IMAGE_INPUT;
    int rows = (int)CONV_INT8_IMAGE_ROWS;

    start();
    EXPECT(conv_int8_run(&m) == CRT_ERR_INPUT_MISSING);
    EXPECT(conv_int8_rows_left(&m, input) == rows);
    EXPECT(conv_int8_rows_wanted(&m, input) > 0);
    EXPECT(conv_int8_rows_wanted(&m, input) < rows);
    EXPECT(conv_int8_push_rows(&m, input, image, CONV_INT8_IMAGE_ROWS + 1) ==
           CRT_ERR_ROWS);
    EXPECT(conv_int8_push_rows(&m, input, image, 2) == CRT_OK);
    EXPECT(conv_int8_rows_left(&m, input) == rows - 2);
    EXPECT(conv_int8_push_rows(&m, input, image + 2 * CONV_INT8_IMAGE_ROW_LEN,
                               CONV_INT8_IMAGE_ROWS - 2) == CRT_OK);
    EXPECT(conv_int8_run(&m) == CRT_OK);
    EXPECT(conv_int8_rows_left(NULL, input) == CRT_ERR_NULL);
    start();
    EXPECT(crt_graph_bind_input(&m.graph, input, image, sizeof image) ==
           CRT_OK);
    EXPECT(conv_int8_push_rows(&m, input, image, 1) == CRT_ERR_PUSHED);
}

int main(void)
{
    test_init();
    test_rows();
    return failures != 0;
}

#else

static int8_t wanted[CONV_INT8_SUM_LEN];

static int spoil(void *context, uint32_t step, uint32_t first, uint32_t count,
                 const void *rows)
{
    (void)context;
    (void)step;
    (void)first;
    (void)count;
    *(int8_t *)(uintptr_t)rows ^= 0x40;
    return 0;
}

static void test_runs(void)
{
    int8_t mine[CONV_INT8_SUM_LEN];

    start();
    EXPECT(conv_int8_run(&m) == CRT_ERR_INPUT_MISSING);
    EXPECT(conv_int8_set_image(&m, image) == CRT_OK);
    EXPECT(conv_int8_run(&m) == CRT_OK);
    memcpy(wanted, conv_int8_sum(&m), sizeof wanted);
    EXPECT(conv_int8_run(&m) == CRT_ERR_INPUT_CONSUMED);
    memcpy(conv_int8_image(&m), image, sizeof image);
    EXPECT(conv_int8_bind_sum(&m, mine) == CRT_OK);
    EXPECT(conv_int8_run(&m) == CRT_OK && conv_int8_sum(&m) == mine);
    EXPECT(memcmp(mine, wanted, sizeof wanted) == 0);
    EXPECT(conv_int8_bind_sum(&m, NULL) == CRT_OK);
    EXPECT(conv_int8_bind_image(&m, image) == CRT_OK);
    EXPECT(conv_int8_image(&m) == image);
    EXPECT(conv_int8_reset(&m) == CRT_OK); /* what is bound stays bound */
    EXPECT(conv_int8_run(&m) == CRT_OK && conv_int8_run(&m) == CRT_OK);
    EXPECT(memcmp(conv_int8_sum(&m), wanted, sizeof wanted) == 0);
    EXPECT(conv_int8_bind_image(&m, arena + 1) == CRT_ERR_OVERLAP);
    EXPECT(conv_int8_bind_sum(&m, arena + 1) == CRT_ERR_OVERLAP);
    EXPECT(conv_int8_bind_image(&m, NULL) == CRT_OK);
    EXPECT(conv_int8_set_image(&m, image) == CRT_OK);
    EXPECT(conv_int8_reset(&m) == CRT_OK);
    EXPECT(conv_int8_run(&m) == CRT_ERR_INPUT_MISSING);
}

static void test_selftest(void)
{
    start();
    EXPECT(conv_int8_selftest(&m) == CRT_OK);
    EXPECT(crt_graph_set_hook(&m.graph, spoil, NULL) == CRT_OK);
    EXPECT(conv_int8_selftest(&m) == CRT_ERR_SELFTEST);
}

static void test_predict(void)
{
    struct conv_int8_inputs in = {image};
    int8_t mine[CONV_INT8_SUM_LEN];
    struct conv_int8_outputs out = {mine};

    EXPECT(conv_int8_predict(arena, &in, &out) == CRT_OK);
    EXPECT(memcmp(mine, wanted, sizeof wanted) == 0);
    out.sum = NULL; /* not wanted */
    EXPECT(conv_int8_predict(arena, &in, &out) == CRT_OK);
    EXPECT(conv_int8_predict(NULL, &in, &out) == CRT_ERR_NULL);
    EXPECT(conv_int8_predict(arena, NULL, &out) == CRT_ERR_NULL);
    EXPECT(conv_int8_predict(arena + 1, &in, &out) == CRT_ERR_ALIGN);
    in.image = arena + 1;
    EXPECT(conv_int8_predict(arena, &in, &out) == CRT_ERR_OVERLAP);
    in.image = NULL;
    EXPECT(conv_int8_predict(arena, &in, &out) == CRT_ERR_INPUT_MISSING);
}

int main(void)
{
    int i;

    for (i = 0; i < (int)sizeof image; i++)
        image[i] = (int8_t)(i * 37 % 251 - 125);
    test_init();
    test_runs();
    test_selftest();
    test_predict();
    return failures != 0;
}

#endif
