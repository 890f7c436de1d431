/* A model that keeps two things from run to run, in two regions. */
#include "expect.h"

#include "crt/state.h"

#include <string.h>

/*   sum (at first 7 and 9) += x;  count (at first 0) += 1;  y = sum */
#define ARENA 16
#define SAVED 9

static const uint8_t first[2] = {7, 9};

/* p: sum, count, y, x */
static void step(void *const *p, const int32_t *a)
{
    uint8_t *sum = (uint8_t *)p[0];
    int i;

    (void)a;
    for (i = 0; i < 2; i++) {
        sum[i] = (uint8_t)(sum[i] + ((const uint8_t *)p[3])[i]);
        ((uint8_t *)p[2])[i] = sum[i];
    }
    (*(uint8_t *)p[1])++;
}

static const int32_t none[] = {0};
/* buffers: 0 arena, 1 further, 2 x, 3 y */
static const struct crt_operand operands[] = {
    {4, 0, 0}, {1, 1, 0}, {0, 3, 0}, {0, 2, 0}};
static const struct crt_rows met[] = {{NULL, 0, 1, 1, 1, 0, 0}};
static const struct crt_step steps[] = {
    {step, none, NULL, operands, 1, 1, 3, 1, 0, 0}};
static const struct crt_stage stages[] = {{0, 1, 0, 0}};
static const int32_t two[] = {2};
static const struct crt_tensor tensors[] = {
    {"x", two, 0, 0, 2, 0, 1, 0, CRT_UINT8, 1, 0},
    {"y", two, 0, 0, 2, 8, 1, 0, CRT_UINT8, 1, 0}};
static const uint32_t region_bytes[] = {ARENA, ARENA};
static const struct crt_kept kept[] = {{first, 4, 2, 0}, {NULL, 1, 3, 1}};
static const struct crt_state state = {crt_state_forget, kept, 2, SAVED, 77};
static const struct crt_state other_id = {crt_state_forget, kept, 2, SAVED, 78};

static struct crt_model made(const struct crt_state *keeps)
{
    struct crt_model m;

    memset(&m, 0, sizeof m);
    m.abi = CRT_ABI;
    m.stages = stages;
    m.steps = steps;
    m.rows = met;
    m.tensors = tensors;
    m.region_bytes = region_bytes;
    m.state = keeps;
    m.stage_count = 1;
    m.step_count = 1;
    m.input_count = 1;
    m.output_count = 1;
    m.pointer_count = 4;
    m.region_align = 16;
    m.region_count = 2;
    m.device_count = 1;
    return m;
}

struct instance {
    struct crt_graph g;
    uint8_t memory[2 * ARENA] __attribute__((aligned(16)));
    void *base[4];
    uint32_t fresh[1];
};

static void start(struct instance *i, const struct crt_model *m)
{
    struct crt_region regions[2];

    memset(i, 0, sizeof *i);
    memset(i->memory, 0x55, sizeof i->memory);
    regions[0].ptr = i->memory;
    regions[1].ptr = i->memory + ARENA;
    regions[0].bytes = regions[1].bytes = ARENA;
    EXPECT(crt_graph_init(&i->g, m, i->base, i->fresh, regions, 2) == CRT_OK);
}

static const uint8_t *run(struct instance *i)
{
    static const uint8_t x[2] = {1, 10};
    void *pointers[4];

    EXPECT(crt_graph_set_input(&i->g, 0, x, 2) == CRT_OK);
    EXPECT(crt_graph_run(&i->g, pointers) == CRT_OK);
    return (const uint8_t *)crt_graph_output(&i->g, 0);
}

/* @req crt_state_forget */
static void test_kept_until_reset(void)
{
    struct crt_model m = made(&state);
    struct instance i;
    const uint8_t *y;

    start(&i, &m);
    y = run(&i);
    EXPECT(y[0] == 8 && y[1] == 19 && i.memory[ARENA + 1] == 1);
    run(&i);
    EXPECT(y[0] == 9 && y[1] == 29 && i.memory[ARENA + 1] == 2);
    EXPECT(crt_graph_reset(&i.g) == CRT_OK);
    EXPECT(i.memory[4] == 7 && i.memory[5] == 9);
    EXPECT(memcmp(i.memory + ARENA, "\x55\0\0\0\x55", 5) == 0);
    EXPECT(i.memory[3] == 0x55 && i.memory[6] == 0x55);
    run(&i);
    EXPECT(y[0] == 8 && y[1] == 19);
}

static void test_saved_and_restored(void)
{
    struct crt_model m = made(&state);
    struct instance i;
    struct instance other;
    uint8_t saved[SAVED + 2];
    uint8_t y[2];

    start(&i, &m);
    start(&other, &m);
    run(&i);
    memset(saved, 0xAA, sizeof saved);
    EXPECT(crt_state_bytes(&i.g) == SAVED);
    EXPECT(crt_state_save(&i.g, saved + 1, SAVED) == CRT_OK);
    EXPECT(saved[0] == 0xAA && saved[SAVED + 1] == 0xAA);
    run(&i);
    run(&other);
    run(&other);
    EXPECT(crt_state_restore(&other.g, saved + 1, SAVED) == CRT_OK);
    EXPECT(crt_graph_get_output(&other.g, 0, y, 2) == CRT_ERR_NO_OUTPUT);
    run(&other);
    EXPECT(memcmp(i.memory + 4, other.memory + 4, 2) == 0);
    EXPECT(memcmp(i.memory + ARENA, other.memory + ARENA, 5) == 0);
}

/* A save over an older one, of which any of its bytes have reached memory when
 * power is lost: the new one, the old one, or refused. And none is restored of
 * which a bit has changed, nor memory that never held one. */
static void test_broken_saves(void)
{
    struct crt_model m = made(&state);
    struct instance i;
    uint8_t old[SAVED];
    uint8_t new[SAVED];
    uint8_t found[SAVED];
    uint32_t cut;
    uint32_t bit;

    start(&i, &m);
    run(&i);
    EXPECT(crt_state_save(&i.g, old, SAVED) == CRT_OK);
    run(&i);
    EXPECT(crt_state_save(&i.g, new, SAVED) == CRT_OK);
    for (cut = 0; cut < 1u << SAVED; cut++) {
        for (bit = 0; bit < SAVED; bit++) {
            found[bit] = (cut >> bit & 1u) != 0 ? new[bit] : old[bit];
        }
        if (memcmp(found, old, SAVED) == 0 || memcmp(found, new, SAVED) == 0) {
            EXPECT(crt_state_restore(&i.g, found, SAVED) == CRT_OK);
            EXPECT(memcmp(i.memory + 4, found + 4, 2) == 0);
        } else {
            EXPECT(crt_state_restore(&i.g, found, SAVED) == CRT_ERR_STATE);
        }
    }
    for (bit = 0; bit < 8u * SAVED; bit++) {
        memcpy(found, new, SAVED);
        found[bit / 8u] ^= (uint8_t)(1u << (bit & 7u));
        EXPECT(crt_state_restore(&i.g, found, SAVED) == CRT_ERR_STATE);
    }
    memset(found, 0, SAVED);
    EXPECT(crt_state_restore(&i.g, found, SAVED) == CRT_ERR_STATE);
    memset(found, 0xFF, SAVED);
    EXPECT(crt_state_restore(&i.g, found, SAVED) == CRT_ERR_STATE);
}

static void test_errors(void)
{
    static struct crt_turn turn;
    struct crt_model m = made(&state);
    struct crt_model plain = made(NULL);
    struct crt_model next = made(&other_id);
    struct crt_graph never;
    struct instance i;
    uint8_t saved[SAVED];

    memset(&never, 0, sizeof never);
    EXPECT(crt_state_bytes(&never) == CRT_ERR_NULL);
    EXPECT(crt_state_save(&never, saved, SAVED) == CRT_ERR_NULL);
    EXPECT(crt_state_restore(&never, saved, SAVED) == CRT_ERR_NULL);
    EXPECT(crt_graph_share_storage(&never, &turn) == CRT_ERR_NULL);
    start(&i, &plain);
    EXPECT(crt_state_bytes(&i.g) == CRT_ERR_STATE);
    EXPECT(crt_state_save(&i.g, saved, SAVED) == CRT_ERR_STATE);
    EXPECT(crt_graph_share_storage(&i.g, &turn) == CRT_OK);
    start(&i, &m);
    EXPECT(crt_graph_share_storage(&i.g, NULL) == CRT_OK);
    EXPECT(crt_graph_share_storage(&i.g, &turn) == CRT_ERR_STATE);
    EXPECT(crt_state_save(&i.g, NULL, SAVED) == CRT_ERR_NULL);
    EXPECT(crt_state_save(&i.g, saved, SAVED - 1) == CRT_ERR_SIZE);
    EXPECT(crt_state_save(&i.g, saved, SAVED) == CRT_OK);
    start(&i, &next);
    run(&i);
    EXPECT(crt_state_restore(&i.g, saved, SAVED) == CRT_ERR_STATE);
    EXPECT(i.memory[4] == 8 && i.memory[ARENA + 1] == 1);
    EXPECT(crt_state_restore(&i.g, saved, SAVED + 1) == CRT_ERR_SIZE);
    EXPECT(crt_state_restore(&i.g, NULL, SAVED) == CRT_ERR_NULL);
}

int main(void)
{
    test_kept_until_reset();
    test_saved_and_restored();
    test_broken_saves();
    test_errors();
    return failures != 0;
}
