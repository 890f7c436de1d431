/* second.c: the queue between two cores that share memory, and what each does
 * with it. Source of the rules: crt/device.h. */
#include "second.h"

#include "crt/port.h"

#define JOBS  32u /* that wait at most; a power of 2 */
#define CPACR (*(volatile uint32_t *)0xE000ED88u)

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
    volatile uint32_t faulted;
    struct job jobs[JOBS];
    void **pointers;
} queue;

extern uint32_t board_second_stack_top[];

void board_second_reset(void);

static void barrier(void)
{
    __asm__ volatile("dmb" ::: "memory");
}

/* ---- the first core ------------------------------------------------------ */

BOARD_WAITING static void rest_until_done(void)
{
    while (queue.done != queue.given && !queue.faulted)
        board_second_rest(0);
    barrier();
}

static int board_second_wait(void *context)
{
    (void)context;
    rest_until_done();
    return queue.faulted != 0;
}

static int give(const struct job *job)
{
    if (queue.given - queue.done == JOBS)
        rest_until_done();
    queue.jobs[queue.given % JOBS] = *job;
    barrier();
    queue.given++;
    board_second_ring(1);
    return queue.faulted != 0;
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

/* Where the second core begins: its memory is the first one's, prepared. */
void board_second_reset(void)
{
    uint32_t taken = 0;

    CPACR |= 0xFu << 20; /* its FPU; without one, of no effect */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    for (;;) {
        rest_until_given(taken);
        work(&queue.jobs[taken % JOBS]);
        taken++;
        barrier();
        queue.done = taken;
        board_second_ring(0);
    }
}

BOARD_WAITING static void second_fault(void)
{
    queue.faulted = 1;
    board_second_ring(0);
    for (;;)
        board_second_rest(1);
}

typedef void vector(void);

/* Only faults: nothing interrupts the second core. */
__attribute__((aligned(128))) static vector *const vectors[16] = {
    (vector *)(uintptr_t)board_second_stack_top,
    board_second_reset,
    second_fault,
    second_fault,
    second_fault,
    second_fault,
    second_fault,
    second_fault,
};

void board_second_start(void **pointers)
{
    queue.pointers = pointers;
    barrier();
    board_second_release(vectors);
}
