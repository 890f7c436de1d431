/* cores.c: one run on several cores. The first core decides what is called, in
 * the order of one core; all compute their slices of that call at once, and
 * meet after it. So no row is read before all of it is written, and none is
 * written over before all have read it. */
#include "crt/cores.h"

#include "crt/lockstep.h"

/* Why the words are enough: `call` is written by the first core alone, after
 * what the call is; `ready` of a core by that core alone, after its slice. The
 * barrier in front of each of these writes, and behind each look at one, orders
 * them with all other memory. */

/* CRT_BARRIER orders all memory before it with all behind it, for other cores;
 * CRT_PAUSE is in each turn of a waiting loop. Both may be given with -D. */
#if !defined(CRT_BARRIER) && defined(__arm__) && !defined(CRT_NO_ASM)
/* The architecture of M-profile cores lets writes to normal memory pass each
 * other; DMB is there from ARMv6-M on. */
#define CRT_BARRIER() __asm__ volatile("dmb" ::: "memory")
#elif !defined(CRT_BARRIER) && defined(__riscv) && !defined(CRT_NO_ASM)
/* RVWMO orders nothing of different addresses by itself. */
#define CRT_BARRIER() __asm__ volatile("fence rw, rw" ::: "memory")
#endif

#if !defined(CRT_PAUSE) && defined(__arm__) && !defined(CRT_NO_ASM)
#define CRT_PAUSE() __asm__ volatile("yield")
#elif !defined(CRT_PAUSE)
#define CRT_PAUSE() ((void)0)
#endif

/* What the number of a call is changed by in `ready`; of a core that has left a
 * run it is not: then it is of no call that is near. */
#define THERE 0x80000000u

/* A word of another core, and all that it wrote before. */
static uint32_t look(const volatile uint32_t *word)
{
#ifdef CRT_BARRIER
    uint32_t value = *word;

    CRT_BARRIER();
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

/* Lets the others see a word of this core, and all that it wrote before. */
static void show(volatile uint32_t *word, uint32_t value)
{
#ifdef CRT_BARRIER
    CRT_BARRIER();
    *word = value;
#else
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

/* Waits until a word has a value. */
static int wait_for(const struct crt_cores *cores,
                    const volatile uint32_t *word, uint32_t value,
                    uint32_t core)
{
    while (look(word) != value) {
        if (cores->wait != NULL && cores->wait(cores->context, core) != 0) {
            return look(word) == value ? CRT_OK : CRT_ERR_CORE;
        }
        CRT_PAUSE();
    }
    return CRT_OK;
}

/* ---- one call ------------------------------------------------------------ */

/* What all cores know of a run; the first core's run has more.
 * MISRA 11.8, in this file: a job is const, what it points to is written */
struct crt_cores_job {
    struct crt_graph *g;
    struct crt_cores *cores;
    const struct crt_slices *slices;
    void **p;
};

/* Where the arguments of a step's slices are, one for each core. */
static const int32_t *const *slices_of(const struct crt_slices *slices,
                                       uint32_t step)
{
    return &slices->args[(size_t)step * slices->cores];
}

/* Computes the slice that these arguments are of. */
static void compute(const struct crt_graph *g, const struct crt_cores *cores,
                    const int32_t *args, void **p)
{
    struct crt_step own = g->model->steps[cores->step];
    struct crt_graph quiet; /* what a band asks of one; no hook */

    quiet.model = g->model;
    quiet.base = g->base;
#ifndef CRT_NO_HOOK
    quiet.hook = NULL;
#endif
    own.args = args;
    (void)crt_run_band(&quiet, &own, p, cores->image, cores->band);
}

/* Waits until all others have done what they were told, and ask for more. */
static int gather(const struct crt_cores *cores, uint32_t count)
{
    uint32_t i;
    int error = CRT_OK;

    for (i = 0; error == CRT_OK && i + 1u < count; i++) {
        error =
            wait_for(cores, &cores->ready[i], (cores->call + 1u) ^ THERE, 0);
    }
    return error;
}

/* Computes a band of a step, on all cores that have a slice of it. */
static int call(const struct crt_cores_job *job, uint32_t step, uint32_t image,
                uint32_t band)
{
    struct crt_cores *cores = job->cores;
    const int32_t *own = *slices_of(job->slices, step);
    int error;

    if (own == NULL) {
        return crt_run_band(job->g, &job->g->model->steps[step], job->p, image,
                            band);
    }
    cores->step = step;
    cores->image = image;
    cores->band = band;
    show(&cores->call, cores->call + 1u);
    compute(job->g, cores, own, job->p);
    error = gather(cores, job->slices->cores);
    if (error != CRT_OK) {
        cores->lost = 1;
        job->g->failed_step = (int16_t)step;
    }
    return error;
}

/* ---- the first core ------------------------------------------------------ */

/* Whether all steps of a stage are kernels, of which one at least is cut. */
static int is_cut(const struct crt_cores_job *job, uint32_t first,
                  uint32_t count)
{
    const struct crt_model *model = job->g->model;
    uint32_t step;
    int found = 0;

    for (step = first; step < first + count; step++) {
        if (model->steps[step].kernel == NULL) {
            return 0;
        }
        if (*slices_of(job->slices, step) != NULL) {
            found = 1;
        }
    }
    return found;
}

/* The bands of a stage in the order of crt_lockstep. */
static int lockstep(const struct crt_cores_job *job, const struct crt_stage *s)
{
    struct crt_graph *g = job->g;
    const struct crt_step *steps = &g->model->steps[s->first];
    const struct crt_link *links = &g->model->links[s->link];
    const struct crt_link *from = NULL;
    const struct crt_link *begun;
    uint16_t *done = crt_lockstep_counters(g);
    uint32_t last;
    uint32_t step;
    uint32_t band;
    int error;

    for (step = 0; step < s->count; step++) {
        done[step] = 0;
    }
    last = s->count; /* two or more */
    for (;;) {
        if (from == NULL && done[last - 1u] == steps[last - 1u].bands) {
            last--;
            if (last == 0u) {
                return CRT_OK;
            }
        } else {
            step = from == NULL ? last : from->reader;
            from = from == NULL ? links : from;
            begun = from;
            step = crt_lockstep_maker(&from, done, step) - 1u;
            band = done[step];
            error = CRT_ERR_ROWS; /* a bit of it has flipped */
            if (band < steps[step].bands) {
                done[step]++;
                error = call(job, s->first + step, 0, band);
            }
            if (error != CRT_OK) {
                step += s->first;
                g->failed_step = (int16_t)step;
                return error;
            }
            if (from == NULL && begun->asker != 0u) { /* none was lacking */
                from = &links[begun->asker - 1u];
            } /* else from the link that led here, or from the last step */
        }
    }
}

static int run_stage(const struct crt_cores_job *job, uint32_t index)
{
    const struct crt_model *model = job->g->model;
    const struct crt_stage *s = model->stages;
    uint32_t step = index;
    uint32_t end;
    uint32_t image;
    uint32_t band;
    int error = CRT_OK;

    end = step + 1u;
    if (s != NULL) {
        s += index;
        step = s->first;
        end = step + s->count;
    }
    if (is_cut(job, step, end - step) == 0) {
        return crt_run_stage(job->g, job->p, index);
    }
    if (s != NULL && s->link != 0u) {
        return lockstep(job, s);
    }
    for (; error == CRT_OK && step != end; step++) {
        for (image = 0; image < model->steps[step].images; image++) {
            for (band = 0; error == CRT_OK && band < model->steps[step].bands;
                 band++) {
                error = call(job, step, image, band);
            }
        }
    }
    return error;
}

/* All cores are there: computes all stages. */
static int run(const struct crt_cores_job *job)
{
    uint32_t stage;
    int error = crt_begin(job->g);

    if (error != CRT_OK) {
        return error;
    }
    for (stage = 0; stage != job->g->model->stage_count; stage++) {
        error = run_stage(job, stage);
        if (error != CRT_OK) {
            break;
        }
    }
    return crt_end(job->g, error);
}

int crt_cores_run(struct crt_graph *g, struct crt_cores *cores,
                  const struct crt_slices *slices, void **pointers)
{
    struct crt_cores_job job;
    int error;

    if (!crt_is_ready(g) || cores == NULL || slices == NULL ||
        pointers == NULL) {
        return CRT_ERR_NULL;
    }
#ifndef CRT_NO_HOOK
    if (g->hook != NULL) {
        return crt_graph_run(g, pointers);
    }
#endif
    error = gather(cores, slices->cores);
    if (error != CRT_OK) {
        return error;
    }
    if (cores->lost != 0u) {
        cores->lost = 0; /* the core is back, and writes no more */
        (void)crt_graph_reset(g);
    }
    job.g = g;
    job.cores = cores;
    job.slices = slices;
    job.p = pointers;
    error = run(&job);
    cores->step = CRT_CORES_OVER;
    cores->error = error;
    show(&cores->call, cores->call + 1u);
    return error;
}

/* ---- the others ---------------------------------------------------------- */

int crt_cores_work(const struct crt_graph *g, struct crt_cores *cores,
                   const struct crt_slices *slices, void **pointers,
                   uint32_t core)
{
    const int32_t *args;
    volatile uint32_t *ready;
    uint32_t seen;
    int error;

    if (!crt_is_ready(g) || cores == NULL || slices == NULL ||
        pointers == NULL) {
        return CRT_ERR_NULL;
    }
    if (core == 0u || core >= slices->cores) {
        return CRT_ERR_INDEX;
    }
    ready = &cores->ready[core - 1u];
    seen = look(&cores->call); /* it stays so until this core is ready */
    if (*ready != (seen ^ THERE)) {
        seen++; /* nothing was told yet; else `wait` gave up just before */
    }
    for (;;) {
        show(ready, seen ^ THERE);
        error = wait_for(cores, &cores->call, seen, core);
        if (error != CRT_OK) {
            return error;
        }
        if (cores->step == CRT_CORES_OVER) {
            show(ready, seen);
            return (int)cores->error;
        }
        args = slices_of(slices, cores->step)[core];
        if (args != NULL) {
            compute(g, cores, args, pointers);
        }
        seen++;
    }
}
