/* second.c: the queue between two cores that share memory, and what each does
 * with it. Source of the rules: crt/device.h. */
#include "second.h"

#include "crt/port.h"

#define JOBS 32u /* that wait at most; a power of 2 */

struct job {
    const struct crt_model *model; /* NULL: a copy */
    void *const *base;
    void *to;
    const void *from;
    uint32_t bytes;
    uint32_t step;
};

/* The first core writes `given` and jobs, the second the others. */
static struct {
    volatile uint32_t given;
    volatile uint32_t done;
    struct job jobs[JOBS];
    void **pointers;
} queue;

static void barrier(void)
{
    __asm__ volatile("dmb" ::: "memory");
}

/* ---- the first core ------------------------------------------------------ */

BOARD_WAITING static void rest_until_done(void)
{
    while (queue.done != queue.given && !board_second_faulted)
        board_second_rest(0);
    barrier();
}

static int board_second_wait(void *context)
{
    (void)context;
    rest_until_done();
    return board_second_faulted != 0;
}

static int give(const struct job *job)
{
    if (queue.given - queue.done == JOBS)
        rest_until_done();
    queue.jobs[queue.given % JOBS] = *job;
    barrier();
    queue.given++;
    board_second_ring(1);
    return board_second_faulted != 0;
}

static int board_second_copy(void *context, void *to, const void *from,
                             uint32_t bytes)
{
    const struct job job = {NULL, NULL, to, from, bytes, 0};

    (void)context;
    return give(&job);
}

static int board_second_launch(void *context, const struct crt_model *model,
                               uint32_t step, void *const *base)
{
    const struct job job = {model, base, NULL, NULL, 0, step};

    (void)context;
    return give(&job);
}

const struct crt_device_api board_second = {
    board_second_copy, board_second_copy, board_second_launch,
    board_second_wait};

/* ---- the second core ----------------------------------------------------- */

BOARD_WAITING static void rest_until_given(uint32_t taken)
{
    while (queue.given == taken)
        board_second_rest(1);
    barrier();
}

static void work(const struct job *job)
{
    if (job->model == NULL)
        crt_copy(job->to, job->from, job->bytes);
    else
        (void)crt_step_run(job->model, job->step, job->base, queue.pointers);
}

void board_second_work(void)
{
    uint32_t taken = 0;

    for (;;) {
        rest_until_given(taken);
        work(&queue.jobs[taken % JOBS]);
        taken++;
        barrier();
        queue.done = taken;
        board_second_ring(0);
    }
}

void board_second_start(void **pointers)
{
    queue.pointers = pointers;
    barrier();
    board_second_begin();
}
