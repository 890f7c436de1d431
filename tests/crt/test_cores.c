/* Two cores in one thread: a core that waits lets the other go on, by the hook
 * that it has for waiting. A core whose hook gives up comes back later, and
 * does what it was told meanwhile. */
#ifdef __linux__
#define _DEFAULT_SOURCE /* of setitimer */
#endif
#include "rings.h"

#include "crt/cores.h"

#ifdef __linux__
#include <signal.h>
#include <sys/time.h>
#endif

/* ---- a model of one step, y = 2 x, cut in two -----------------------------
 */

#define WIDE 8

static const int32_t parts[] = {0, WIDE, 0, 3, 3, WIDE};

/* p: out, in; a: from, to */
static void twice(void *const *p, const int32_t *a)
{
    int32_t i;

    for (i = a[0]; i < a[1]; i++)
        ((uint8_t *)p[0])[i] = (uint8_t)(2 * ((const uint8_t *)p[1])[i]);
}

static const struct crt_rows wide[] = {{NULL, 0, 1, 1, 1, 0, 0}};
static const struct crt_operand of_wide[] = {{AT_Y, 0, 0}, {AT_X, 0, 0}};
static const struct crt_step one_step[] = {
    {twice, parts, NULL, of_wide, 1, 1, 1, 1, 0, 0}};
static const int32_t eight[] = {WIDE};
static const struct crt_tensor ends[] = {
    {"x", eight, 0, 0, WIDE, AT_X, 1, 0, CRT_UINT8, 1, CRT_TENSOR_CONSUMED},
    {"y", eight, 0, 0, WIDE, AT_Y, 1, 0, CRT_UINT8, 1, 0}};
static const int32_t *const halves[] = {parts + 2, parts + 4};
static const struct crt_slices cut = {halves, 2};
static const uint8_t x[WIDE] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t y[WIDE] = {2, 4, 6, 8, 10, 12, 14, 16};

/* ---- both cores ------------------------------------------------------------
 */

struct both {
    struct crt_graph g;
    struct crt_cores cores;
    const struct crt_slices *slices;
    void *pointers[2][5];
    int left; /* times that the other core still comes, when it is waited for */
    int error; /* what it gave last */
};

static struct both two;
enum { ONCE = 1000 };
static int flips; /* a bit of a counter, while the first core waits */

static void work(void)
{
    two.error =
        crt_cores_work(&two.g, &two.cores, two.slices, two.pointers[1], 1);
}

/* The other core gives up at once, and comes again when it is waited for. */
static int yields(void *context, uint32_t core)
{
    struct both *b = (struct both *)context;

    if (core != 0 || b->left == 0)
        return 1;
    if (b->left == ONCE) { /* gives up just when the other is done */
        work();
        return 1;
    }
    b->left--;
    if (flips != 0)
        arena[AT_COUNT + 1] |= 0x40u;
    work();
    return 0;
}

static int go(void)
{
    return crt_cores_run(&two.g, &two.cores, two.slices, two.pointers[0]);
}

static void start(const struct crt_model *m, const struct crt_slices *slices,
                  uint32_t bytes)
{
    struct crt_region region;

    memset(&two, 0, sizeof two);
    memset(arena, 0x55, sizeof arena);
    region.ptr = arena;
    region.bytes = ARENA;
    two.slices = slices;
    two.cores.wait = yields;
    two.cores.context = &two;
    EXPECT(crt_graph_init(&two.g, m, base, fresh, &region, 1) == CRT_OK);
    EXPECT(crt_graph_set_input(&two.g, 0, x, bytes) == CRT_OK);
}

static struct crt_model plain(void)
{
    struct crt_model m = made();

    m.stages = NULL;
    m.advance = NULL;
    m.links = NULL;
    m.steps = one_step;
    m.rows = wide;
    m.tensors = ends;
    m.step_count = m.output_count = 1;
    return m;
}

static void test_runs(void)
{
    struct crt_model m = plain();
    int again;

    start(&m, &cut, WIDE);
    for (again = 0; again < 3; again++) {
        memset(arena + AT_Y, 0, WIDE);
        two.left = 9;
        EXPECT(crt_graph_set_input(&two.g, 0, x, WIDE) == CRT_OK);
        EXPECT(go() == CRT_OK);
        EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
        work(); /* is told that it is over */
        EXPECT(two.error == CRT_OK);
    }
    two.left = 9;
    EXPECT(go() == CRT_ERR_INPUT_CONSUMED);
    work();
    EXPECT(two.error == CRT_ERR_INPUT_CONSUMED);
}

static void test_stage_of_one_step(void)
{
    static const struct crt_stage alone[] = {{0, 1, 0, 0}};
    struct crt_model m = plain();

    m.stages = alone;
    start(&m, &cut, WIDE);
    two.left = 9;
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}

static void test_done_just_when_given_up(void)
{
    struct crt_model m = plain();

    start(&m, &cut, WIDE);
    two.left = ONCE;
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}

#ifdef __linux__
static void comes(int signal)
{
    (void)signal;
    two.cores.wait = yields;
    work();
}

/* Without `wait` a core spins; the other one comes by a signal here. */
static void test_spins(void)
{
    static const struct itimerval soon = {{0, 0}, {0, 20000}};
    struct crt_model m = plain();

    start(&m, &cut, WIDE);
    two.left = 9;
    two.cores.wait = NULL;
    EXPECT(signal(SIGALRM, comes) != SIG_ERR);
    EXPECT(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}
#endif

/* ---- three cores, and one --------------------------------------------------
 */

static const int32_t thirds[] = {0, 2, 2, 5, 5, WIDE};
static const int32_t *const in_three[] = {thirds, thirds + 2, thirds + 4};
static const struct crt_slices three = {in_three, 3};
static const int32_t *const in_one[] = {parts};
static const struct crt_slices uncut = {in_one, 1};

static void work_of(uint32_t core)
{
    two.error =
        crt_cores_work(&two.g, &two.cores, two.slices, two.pointers[1], core);
}

static int both_come(void *context, uint32_t core)
{
    (void)context;
    if (core != 0)
        return 1;
    work_of(1);
    work_of(2);
    return 0;
}

/* The third core comes no more. */
static int one_comes(void *context, uint32_t core)
{
    (void)context;
    if (core != 0 || two.left-- == 0)
        return 1;
    work_of(1);
    return 0;
}

static void test_three(void)
{
    struct crt_model m = plain();

    start(&m, &three, WIDE);
    two.cores.wait = both_come;
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
    EXPECT(crt_graph_set_input(&two.g, 0, x, WIDE) == CRT_OK);
    two.cores.wait = one_comes;
    two.left = 3;
    EXPECT(go() == CRT_ERR_CORE);
    start(&m, &uncut, WIDE);
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}

static void test_no_stages(void)
{
    struct crt_model m = plain();

    m.stage_count = 0;
    start(&m, &cut, WIDE);
    two.left = 9;
    EXPECT(go() == CRT_OK);
}

static void test_core_that_never_comes(void)
{
    struct crt_model m = plain();

    start(&m, &cut, WIDE);
    EXPECT(go() == CRT_ERR_CORE);
    two.left = 9; /* nothing was touched */
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}

static void test_core_that_stops(void)
{
    struct crt_model m = plain();

    start(&m, &cut, WIDE);
    work(); /* is there, and is not seen again */
    EXPECT(two.error == CRT_ERR_CORE);
    EXPECT(go() == CRT_ERR_CORE);
    EXPECT(two.g.failed_step == 0 && two.g.valid == 0);
    EXPECT(crt_graph_set_input(&two.g, 0, x, WIDE) == CRT_OK);
    EXPECT(go() == CRT_ERR_CORE); /* it may still write */
    work();                       /* it comes back; the run is over */
    EXPECT(two.error == CRT_ERR_CORE);
    two.left = 9;
    EXPECT(go() == CRT_ERR_INPUT_MISSING);
    work();
    EXPECT(crt_graph_set_input(&two.g, 0, x, WIDE) == CRT_OK);
    two.left = 9;
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}

/* s and y: each core has one alone, the first has t's other rows */
static const int32_t *const mixed[] = {terms, NULL, NULL,      NULL,
                                       NULL,  NULL, terms + 1, NULL};
static const struct crt_slices few = {mixed, 2};

static void test_lockstep(void)
{
    static const uint8_t wanted[HALF] = {11, 24, 38, 22};
    struct crt_model m = made();

    start(&m, &few, ROWS);
    two.left = 99;
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, wanted, HALF) == 0);
    EXPECT(arena[AT_Z] == 79);
}

static void test_stops_in_lockstep(void)
{
    struct crt_model m = made();

    start(&m, &few, ROWS);
    two.left = 3;
    EXPECT(go() == CRT_ERR_CORE);
    EXPECT(two.g.failed_step >= 0 && two.g.valid == 0);
}

static void test_flipped_counter(void)
{
    struct crt_model m = made();

    start(&m, &few, ROWS);
    two.left = 99;
    flips = 1;
    work();
    EXPECT(go() == CRT_ERR_ROWS);
    flips = 0;
    EXPECT(two.g.failed_step == 0);
}

/* A task, which the first core does by itself. */
static const void *const packed[] = {y};
static const int32_t unpacks[] = {CRT_TASK_UNPACK, WIDE, WIDE};
static const struct crt_step task[] = {
    {NULL, unpacks, packed, of_wide, 1, 1, 1, 0, 1, 0}};

static int copies(const void *from, uint32_t from_bytes, void *to,
                  uint32_t to_bytes)
{
    memcpy(to, from, to_bytes);
    return from_bytes != to_bytes;
}

static void test_task(void)
{
    struct crt_model m = plain();

    m.steps = task;
    m.unpack = copies;
    start(&m, &cut, WIDE);
    work();
    EXPECT(go() == CRT_OK);
    EXPECT(memcmp(arena + AT_Y, y, WIDE) == 0);
}

static int fails(const void *from, uint32_t from_bytes, void *to,
                 uint32_t to_bytes)
{
    (void)from;
    (void)from_bytes;
    (void)to;
    (void)to_bytes;
    return 1;
}

static void test_task_fails(void)
{
    struct crt_model m = plain();

    m.steps = task;
    m.unpack = fails;
    start(&m, &cut, WIDE);
    work();
    EXPECT(go() == CRT_ERR_UNPACK);
}

static const int32_t *const none[] = {NULL, NULL, NULL, NULL,
                                      NULL, NULL, NULL, NULL};

/* Of stages that are not cut, and of those with a task, the others see nothing.
 */
static void test_stages_of_one_core(void)
{
    struct crt_slices slices;
    struct crt_model m = made();

    slices.args = none;
    slices.cores = 2;
    start(&m, &slices, ROWS);
    work();
    EXPECT(go() == CRT_OK);
    EXPECT(arena[AT_Z] == 79);
}

#ifndef CRT_NO_HOOK
static void test_hook(void)
{
    struct crt_model m = made();
    struct seen s = {"", 0, 0};

    start(&m, &few, ROWS);
    EXPECT(crt_graph_set_hook(&two.g, look, &s) == CRT_OK);
    EXPECT(go() == CRT_OK); /* alone */
    EXPECT(s.count == 16 && arena[AT_Z] == 79);
}
#endif

static void test_wrong(void)
{
    struct crt_model m = plain();
    void **p = two.pointers[0];
    struct crt_graph empty;

    memset(&empty, 0, sizeof empty);
    start(&m, &cut, WIDE);
    EXPECT(crt_cores_run(NULL, &two.cores, &cut, p) == CRT_ERR_NULL);
    EXPECT(crt_cores_work(NULL, &two.cores, &cut, p, 1) == CRT_ERR_NULL);
    EXPECT(crt_cores_run(&empty, &two.cores, &cut, p) == CRT_ERR_NULL);
    EXPECT(crt_cores_run(&two.g, NULL, &cut, p) == CRT_ERR_NULL);
    EXPECT(crt_cores_run(&two.g, &two.cores, NULL, p) == CRT_ERR_NULL);
    EXPECT(crt_cores_run(&two.g, &two.cores, &cut, NULL) == CRT_ERR_NULL);
    EXPECT(crt_cores_work(&empty, &two.cores, &cut, p, 1) == CRT_ERR_NULL);
    EXPECT(crt_cores_work(&two.g, NULL, &cut, p, 1) == CRT_ERR_NULL);
    EXPECT(crt_cores_work(&two.g, &two.cores, NULL, p, 1) == CRT_ERR_NULL);
    EXPECT(crt_cores_work(&two.g, &two.cores, &cut, NULL, 1) == CRT_ERR_NULL);
    EXPECT(crt_cores_work(&two.g, &two.cores, &cut, p, 0) == CRT_ERR_INDEX);
    EXPECT(crt_cores_work(&two.g, &two.cores, &cut, p, 2) == CRT_ERR_INDEX);
}

int main(void)
{
    test_runs();
    test_stage_of_one_step();
    test_done_just_when_given_up();
#ifdef __linux__
    test_spins();
#endif
    test_three();
    test_no_stages();
    test_core_that_never_comes();
    test_core_that_stops();
    test_lockstep();
    test_stops_in_lockstep();
    test_flipped_counter();
    test_task();
    test_task_fails();
    test_stages_of_one_core();
#ifndef CRT_NO_HOOK
    test_hook();
#endif
    test_wrong();
    return failures != 0;
}
