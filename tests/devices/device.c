/* device.c: a device for tests that has memory of its own, which the CPU cannot
 * touch: its addresses are pages without access, the bytes are elsewhere. Nor
 * can it touch the CPU's memory: a missing copy is a fault on either side.
 * Works at once, as late as it may, or at its own pace in a thread. */
#include "crt/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_REGIONS 16
#define MOST_WORK 1024
#define NOWHERE_BYTES ((size_t)1 << 28)
#define PATIENCE_SECONDS 20

enum pace { AT_ONCE, LATE, THREAD };
enum kind { COPY_IN, COPY_OUT, LAUNCH };

struct region {
    uint8_t *address; /* what the CPU is told */
    uint8_t *bytes;
    size_t size;
};

struct work {
    enum kind kind;
    uint8_t *to;
    const uint8_t *from;
    uint32_t bytes;
    const struct crt_model *model;
    uint32_t step;
    void **base;
};

struct device {
    enum pace pace;
    uint8_t *nowhere;
    struct region regions[MOST_REGIONS];
    uint32_t region_count;
    struct work queue[MOST_WORK];
    uint32_t first, end; /* work that waits to be done */
    int held;            /* the thread does nothing */
    int stop;
    int failing;  /* calls until one fails; 0: none does */
    uint32_t counts[4]; /* copies in, copies out, launches, waits */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static size_t whole_pages(size_t bytes)
{
    return (bytes + 4095u) / 4096u * 4096u;
}

static uint8_t *pages(size_t bytes, int access)
{
    void *made = mmap(NULL, bytes, access,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return made == MAP_FAILED ? NULL : (uint8_t *)made;
}

/* ---- the device's side --------------------------------------------------- */

/* Where bytes at an address of the device's really are; else out of reach. */
static uint8_t *own(const struct device *d, const void *address)
{
    const uint8_t *at = (const uint8_t *)address;
    uint32_t i;

    for (i = 0; i < d->region_count; i++) {
        const struct region *r = &d->regions[i];

        if (at >= r->address && at < r->address + r->size)
            return r->bytes + (at - r->address);
    }
    return d->nowhere;
}

static uint32_t base_count(const struct crt_model *model)
{
    return (uint32_t)CRT_BASE_COUNT(model->region_count, model->input_count,
                                    model->output_count,
                                    model->parameter_count,
                                    model->device_count);
}

static void do_work(struct device *d, const struct work *w)
{
    switch (w->kind) {
    case COPY_IN:
        memcpy(own(d, w->to), w->from, w->bytes);
        break;
    case COPY_OUT:
        memcpy(w->to, own(d, w->from), w->bytes);
        break;
    case LAUNCH: {
        void **pointers = calloc(w->model->pointer_count, sizeof *pointers);

        (void)crt_step_run(w->model, w->step, w->base, pointers);
        free(pointers);
        free(w->base);
    }
    }
}

static void *run_thread(void *context)
{
    struct device *d = (struct device *)context;

    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        if (d->pace != THREAD || d->first == d->end || d->held) {
            pthread_cond_wait(&d->changed, &d->lock);
        } else {
            struct work w = d->queue[d->first % MOST_WORK];

            pthread_mutex_unlock(&d->lock);
            do_work(d, &w);
            pthread_mutex_lock(&d->lock);
            d->first++;
            pthread_cond_broadcast(&d->changed);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- what crt calls ------------------------------------------------------ */

static int give(struct device *d, struct work w)
{
    int error = d->failing > 0 && --d->failing == 0;

    d->counts[w.kind]++;
    if (error)
        return -1;
    if (d->pace == AT_ONCE) {
        do_work(d, &w);
        return 0;
    }
    pthread_mutex_lock(&d->lock);
    error = d->end - d->first == MOST_WORK;
    if (!error)
        d->queue[d->end++ % MOST_WORK] = w;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return error;
}

static int copy_in(void *context, void *to, const void *from, uint32_t bytes)
{
    struct work w = {COPY_IN, NULL, NULL, 0, NULL, 0, NULL};

    w.to = (uint8_t *)to;
    w.from = (const uint8_t *)from;
    w.bytes = bytes;
    return give((struct device *)context, w);
}

static int copy_out(void *context, void *to, const void *from, uint32_t bytes)
{
    struct work w = {COPY_OUT, NULL, NULL, 0, NULL, 0, NULL};

    w.to = (uint8_t *)to;
    w.from = (const uint8_t *)from;
    w.bytes = bytes;
    return give((struct device *)context, w);
}

static int launch(void *context, const struct crt_model *model, uint32_t step,
                  void *const *base)
{
    struct device *d = (struct device *)context;
    struct work w = {LAUNCH, NULL, NULL, 0, NULL, 0, NULL};
    uint32_t count = base_count(model);
    uint32_t i;

    w.model = model;
    w.step = step;
    w.base = calloc(count, sizeof *w.base);
    for (i = 0; i < count; i++)
        w.base[i] = own(d, base[i]);
    return give(d, w);
}

static int wait_in_time(struct device *d)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_SECONDS;
    while (d->first != d->end) {
        if (pthread_cond_timedwait(&d->changed, &d->lock, &end) != 0)
            return -1;
    }
    return 0;
}

static int wait(void *context)
{
    struct device *d = (struct device *)context;
    int error = 0;

    d->counts[3]++;
    if (d->failing > 0 && --d->failing == 0)
        return -1;
    for (; d->pace == LATE && d->first != d->end; d->first++)
        do_work(d, &d->queue[d->first % MOST_WORK]);
    pthread_mutex_lock(&d->lock);
    if (d->pace == THREAD)
        error = wait_in_time(d);
    pthread_mutex_unlock(&d->lock);
    return error;
}

const struct crt_device_api device_api = {copy_in, copy_out, launch, wait};

/* ---- what tests call ----------------------------------------------------- */

struct device *device_new(void)
{
    struct device *d = (struct device *)calloc(1, sizeof *d);

    d->nowhere = pages(NOWHERE_BYTES, PROT_NONE);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    pthread_create(&d->thread, NULL, run_thread, d);
    return d;
}

/* When it works from now on; while nothing waits to be done. */
void device_pace(struct device *d, int pace)
{
    pthread_mutex_lock(&d->lock);
    d->pace = (enum pace)pace;
    pthread_mutex_unlock(&d->lock);
}

/* The address of so many bytes, the last of which end a page. */
void *device_allocate(struct device *d, uint32_t bytes)
{
    size_t size = whole_pages(bytes + 1u);
    size_t skip = size - (bytes + 15u) / 16u * 16u;
    struct region *r = &d->regions[d->region_count++];

    r->address = pages(size, PROT_NONE) + skip;
    r->bytes = pages(size, PROT_READ | PROT_WRITE) + skip;
    r->size = bytes;
    return r->address;
}

/* Nothing is done until it is let go; only with a thread. */
void device_hold(struct device *d, int held)
{
    pthread_mutex_lock(&d->lock);
    d->held = held;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* The call after `calls - 1` others fails. */
void device_fail(struct device *d, int calls)
{
    d->failing = calls;
}

/* Of copies in, copies out, launches, waits. */
uint32_t device_count(const struct device *d, int which)
{
    return d->counts[which];
}

void device_free(struct device *d)
{
    uint32_t i;

    pthread_mutex_lock(&d->lock);
    d->stop = 1;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    for (i = 0; i < d->region_count; i++) {
        struct region *r = &d->regions[i];
        size_t size = whole_pages(r->size + 1u);
        size_t skip = size - (r->size + 15u) / 16u * 16u;

        munmap(r->address - skip, size);
        munmap(r->bytes - skip, size);
    }
    munmap(d->nowhere, NOWHERE_BYTES);
    free(d);
}
