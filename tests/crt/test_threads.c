/* Instances at the same time, under ThreadSanitizer: two of their own, ten that
 * share one parameter set, two that take turns in one storage. Exit code 1 if
 * one of them ever sees another result than it has alone. */
#include "affine.h"
#include "crt/weights.h"
#include "image.h"

#include <pthread.h>
#include <sched.h>

enum { MANY = 10, RUNS = 200 };

static const int8_t b_bytes[4] = {1, 1, 2, 2};
static const int8_t w_bytes[4] = {3, -1, 2, 5};
static uint8_t memory[IMAGE_BYTES] __attribute__((aligned(IMAGE_ALIGN)));
static struct crt_params params;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct affine first;

struct worker {
    struct affine own;
    pthread_t thread;
    int times;
    int runs;
    int busy;
    int failures;
};
static struct worker workers[MANY];

static int is_right(const int8_t *y, int times)
{
    int i;

    for (i = 0; i < 4; i++) {
        if (y[i] != (int8_t)(times * (i + 1) * w_bytes[i] + 2 * b_bytes[i]))
            return 0;
    }
    return 1;
}

static int start(void *(*work)(void *), int count)
{
    int failures = 0;
    int i;

    for (i = 0; i < count; i++) {
        workers[i].times = i % 5 + 1;
        workers[i].runs = workers[i].busy = workers[i].failures = 0;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        failures += workers[i].failures;
    }
    return failures;
}

/* ---- one parameter set --------------------------------------------------- */

static int begin(struct worker *w)
{
    int error;

    pthread_mutex_lock(&lock);
    error = affine_init(&w->own, &affine_model);
    if (error == CRT_OK)
        error = crt_graph_share_params(&w->own.g, &first.g, NULL);
    pthread_mutex_unlock(&lock);
    return error;
}

static int finish(struct worker *w)
{
    int error;

    pthread_mutex_lock(&lock);
    error = crt_graph_release_params(&w->own.g);
    pthread_mutex_unlock(&lock);
    return error;
}

/* Comes and goes all the while, so that others share and release too. */
static void *share_and_run(void *argument)
{
    struct worker *w = (struct worker *)argument;
    int8_t y[4];
    int i;

    for (i = 0; i < RUNS; i++) {
        if (i % 20 == 0)
            w->failures += begin(w) != CRT_OK;
        w->failures += crt_graph_parameter(&w->own.g, 0) !=
                       crt_graph_parameter(&first.g, 0);
        w->failures += crt_graph_parameter(&w->own.g, 1) !=
                       crt_graph_parameter(&first.g, 1);
        w->failures += affine_run(&w->own, w->times, y) != CRT_OK;
        w->failures += !is_right(y, w->times);
        if (i % 20 == 19)
            w->failures += finish(w) != CRT_OK;
    }
    return NULL;
}

/* @req params.h:Thread, weights.h:Thread */
static int test_one_parameter_set(void)
{
    struct entry entries[2] = {
        {"b", CRT_INT8, 2, {2, 2}, 0, 0, 11, 4, b_bytes},
        {"w", CRT_INT8, 2, {2, 2}, 7, 0, 12, 4, w_bytes}};
    int failures;

    image_write(memory, entries, 2);
    if (crt_params_verify(&params, memory, IMAGE_BYTES) != CRT_OK ||
        affine_init(&first, &affine_model) != CRT_OK ||
        crt_graph_load_params(&first.g, &params) != CRT_OK)
        return 1;
    failures = start(share_and_run, MANY);
    return failures != 0 || params.users != 2;
}

/* ---- one storage --------------------------------------------------------- */

static struct crt_turn turn;
static int8_t storage[AFFINE_BYTES] __attribute__((aligned(16)));

/* Until it has run RUNS times: right answers, or another has the storage. */
static void *run_in_turn(void *argument)
{
    struct worker *w = (struct worker *)argument;
    int8_t y[4];

    while (w->runs < RUNS && w->failures == 0) {
        switch (affine_run(&w->own, w->times, y)) {
        case CRT_OK:
            w->runs++;
            w->failures += !is_right(y, w->times);
            break;
        case CRT_ERR_BUSY:          /* the other is in a run or a copy */
        case CRT_ERR_INPUT_MISSING: /* or took over after set_input */
        case CRT_ERR_NO_OUTPUT:     /* or after the run */
            w->busy++;
            sched_yield();
            break;
        default:
            w->failures++;
        }
    }
    return NULL;
}

/* The same where nobody spins: who finds the memory taken sleeps. */
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int is_free;

static int change_turns(struct crt_turn *shared, int is_taken)
{
    (void)shared;
    pthread_mutex_lock(&gate);
    while (is_taken && !is_free)
        pthread_cond_wait(&freed, &gate);
    is_free = !is_taken;
    if (!is_taken)
        pthread_cond_signal(&freed);
    pthread_mutex_unlock(&gate);
    return 0;
}

/* Its input is bound, and its output, so that nothing of it is ever lost. */
static void *wait_and_run(void *argument)
{
    struct worker *w = (struct worker *)argument;
    int8_t x[4] = {0};
    int8_t y[4] __attribute__((aligned(4)));
    void *pointers[6];
    int i;

    for (i = 0; i < 4; i++)
        x[i] = (int8_t)(w->times * (i + 1));
    w->failures += crt_graph_bind_input(&w->own.g, 0, x, 4) != CRT_OK;
    w->failures += crt_graph_bind_output(&w->own.g, 0, y, 4) != CRT_OK;
    for (i = 0; i < RUNS && w->failures == 0; i++) {
        w->failures += crt_graph_run(&w->own.g, pointers) != CRT_OK;
        w->failures += !is_right(y, w->times);
    }
    return NULL;
}

/* @req crt_graph_share_storage:Thread */
static int test_one_storage(void *(*work)(void *), int count)
{
    struct crt_region region;
    int i;

    region.ptr = storage;
    region.bytes = AFFINE_BYTES;
    for (i = 0; i < count; i++) {
        struct affine *a = &workers[i].own;

        if (crt_graph_init(&a->g, &affine_model, a->base, a->fresh, &region,
                           1) != CRT_OK ||
            crt_graph_share_params(&a->g, &first.g, NULL) != CRT_OK ||
            crt_graph_share_storage(&a->g, &turn) != CRT_OK)
            return 1;
    }
    return start(work, count);
}

/* ---- two of their own ---------------------------------------------------- */

static void *run_alone(void *argument)
{
    struct worker *w = (struct worker *)argument;
    int8_t y[4];
    int i;

    for (i = 0; i < RUNS; i++) {
        w->failures += affine_run(&w->own, w->times, y) != CRT_OK;
        w->failures += !is_right(y, w->times);
    }
    return NULL;
}

/* @req graph.h:Thread */
static int test_instances(void)
{
    int i;

    for (i = 0; i < 2; i++) {
        if (affine_init(&workers[i].own, &affine_model) != CRT_OK ||
            crt_graph_share_params(&workers[i].own.g, &first.g, NULL) != CRT_OK)
            return 1;
    }
    return start(run_alone, 2);
}

int main(void)
{
    if (test_one_parameter_set() || test_one_storage(run_in_turn, 2))
        return 1;
    turn.wait = change_turns;
    return test_one_storage(wait_and_run, 4) || test_instances();
}
