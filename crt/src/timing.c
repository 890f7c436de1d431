/* timing.c: measures runs of a graph by a counter of the caller's.
 * Knows no clock; 64-bit integers, no floats. */
#include "crt/timing.h"

#define FRACTION 8u /* bits after the point in a summary */

static uint32_t or_one(uint32_t value)
{
    return value == 0u ? 1u : value;
}

/* One run, timed; `stage` < 0: all of it. */
static int timed(struct crt_graph *g, void **pointers,
                 const struct crt_timing *how, int32_t stage, uint64_t *ticks)
{
    uint32_t start = how->tick(how->context);
    int error = stage < 0 ? crt_graph_run(g, pointers)
                          : crt_graph_run_stage(g, pointers, (uint32_t)stage);

    *ticks += (uint32_t)(how->tick(how->context) - start);
    return error;
}

static int prepared(struct crt_graph *g, const struct crt_timing *how)
{
    return how->prepare == NULL ? CRT_OK : how->prepare(how->context, g);
}

static int warm_up(struct crt_graph *g, void **pointers,
                   const struct crt_timing *how)
{
    int error = prepared(g, how);

    return error != CRT_OK ? error : crt_graph_run(g, pointers);
}

/* `lap->runs` runs. */
static int run_lap(struct crt_graph *g, void **pointers,
                   const struct crt_timing *how, struct crt_lap *lap)
{
    uint32_t start;
    uint32_t i;
    int error = CRT_OK;

    lap->ticks = 0;
    if (how->prepare == NULL) {
        start = how->tick(how->context);
        for (i = 0; i < lap->runs && error == CRT_OK; i++) {
            error = crt_graph_run(g, pointers);
        }
        lap->ticks = (uint32_t)(how->tick(how->context) - start);
        return error;
    }
    for (i = 0; i < lap->runs && error == CRT_OK; i++) {
        error = prepared(g, how);
        if (error == CRT_OK) {
            error = timed(g, pointers, how, -1, &lap->ticks);
        }
    }
    return error;
}

/* Runs of the next try, after one that was too short; of no ticks: as many. */
static uint32_t longer(const struct crt_lap *lap, uint32_t min_ticks)
{
    uint64_t by_ratio = (uint64_t)lap->runs * 1618u / 1000u + 1u;
    uint64_t wanted;

    if (lap->ticks == 0u) {
        return lap->runs;
    }
    wanted = (uint64_t)lap->runs * min_ticks / lap->ticks + 1u;
    if (wanted < by_ratio) {
        wanted = by_ratio;
    }
    return wanted > UINT32_MAX ? UINT32_MAX : (uint32_t)wanted;
}

int crt_time_runs(struct crt_graph *g, void **pointers,
                  const struct crt_timing *how, struct crt_lap *laps,
                  uint32_t count)
{
    uint32_t zeros;
    uint32_t i;
    int error;

    if (how == NULL || how->tick == NULL || laps == NULL) {
        return CRT_ERR_NULL;
    }
    error = warm_up(g, pointers, how);
    for (i = 0; i < count && error == CRT_OK; i++) {
        zeros = 0;
        laps[i].runs = or_one(how->number);
        for (;;) {
            error = run_lap(g, pointers, how, &laps[i]);
            if (laps[i].ticks == 0u) {
                zeros++;
            }
            if (error != CRT_OK || laps[i].ticks >= how->min_ticks ||
                zeros >= or_one(how->zero_limit)) {
                break;
            }
            laps[i].runs = longer(&laps[i], how->min_ticks);
        }
        if (how->rest != NULL && i % or_one(how->rest_every) == 0u) {
            how->rest(how->context);
        }
    }
    return error;
}

int crt_time_stages(struct crt_graph *g, void **pointers,
                    const struct crt_timing *how, struct crt_lap *laps)
{
    uint32_t run;
    uint32_t stage;
    int error;

    if (how == NULL || how->tick == NULL || laps == NULL) {
        return CRT_ERR_NULL;
    }
    error = warm_up(g, pointers, how);
    if (error != CRT_OK) {
        return error;
    }
    for (stage = 0; stage < g->model->stage_count; stage++) {
        laps[stage].ticks = 0;
        laps[stage].runs = or_one(how->number);
    }
    for (run = 0; run < or_one(how->number) && error == CRT_OK; run++) {
        error = prepared(g, how);
        for (stage = 0; stage < g->model->stage_count && error == CRT_OK;
             stage++) {
            error = timed(g, pointers, how, (int32_t)stage, &laps[stage].ticks);
        }
    }
    return error;
}

/* ---- summary --------------------------------------------------------------
 */

static uint64_t per_run(const struct crt_lap *lap)
{
    return ((lap->ticks << FRACTION) + lap->runs / 2u) / lap->runs;
}

/* The lap with `rank` others before it, if they stood in order. */
static uint64_t ranked(const struct crt_lap *laps, uint32_t count,
                       uint32_t rank)
{
    uint64_t value = 0;
    uint32_t before = 0;
    uint32_t equal = 0;
    uint32_t i;
    uint32_t k;

    for (i = 0; rank < before || rank >= before + equal; i++) {
        value = per_run(&laps[i]);
        before = 0;
        equal = 0;
        for (k = 0; k < count; k++) {
            uint64_t other = per_run(&laps[k]);

            if (other < value) {
                before++;
            }
            if (other == value) {
                equal++;
            }
        }
    }
    return value;
}

/* The largest number whose square is not above the value. */
static uint64_t root(uint64_t value)
{
    uint64_t bit = (uint64_t)1 << 62;
    uint64_t found = 0;

    for (; bit != 0u; bit >>= 2) {
        if (value >= found + bit) {
            value -= found + bit;
            found = (found >> 1) + bit;
        } else {
            found >>= 1;
        }
    }
    return found;
}

/* The spread about the mean; deviations are shortened to 28 bits, so that
 * a sum of 256 squares fits; further laps shorten them more. */
static uint64_t spread(const struct crt_lap *laps, uint32_t count,
                       const struct crt_timing_summary *s)
{
    uint64_t most = s->max - s->mean;
    uint64_t sum = 0;
    uint32_t shift = 0;
    uint32_t i;

    if (s->mean - s->min > most) {
        most = s->mean - s->min;
    }
    while ((most >> shift) > (UINT32_MAX >> 4) / (count / 256u + 1u)) {
        shift++;
    }
    for (i = 0; i < count; i++) {
        uint64_t value = per_run(&laps[i]);
        uint64_t far = value > s->mean ? value - s->mean : s->mean - value;

        sum += (far >> shift) * (far >> shift);
    }
    return root(sum / count) << shift;
}

int crt_timing_summary_of(const struct crt_lap *laps, uint32_t count,
                          struct crt_timing_summary *summary)
{
    uint64_t sum = 0;
    uint32_t i;

    if (laps == NULL || summary == NULL) {
        return CRT_ERR_NULL;
    }
    for (i = 0; i < count; i++) {
        if (laps[i].runs == 0u) {
            return CRT_ERR_SIZE;
        }
        sum += per_run(&laps[i]);
    }
    if (count == 0u) {
        return CRT_ERR_SIZE;
    }
    summary->mean = (sum + (uint64_t)count / 2u) / count;
    summary->min = ranked(laps, count, 0);
    summary->max = ranked(laps, count, count - 1u);
    summary->median = (ranked(laps, count, (count - 1u) / 2u) +
                       ranked(laps, count, count / 2u)) /
                      2u;
    summary->std = spread(laps, count, summary);
    return CRT_OK;
}
