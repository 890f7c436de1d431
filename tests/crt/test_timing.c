/* Every call of crt/timing.h and crt/trace.h, right and wrong, on the model of
 * model.h and a counter that the test moves. Prints each failed line; exit code
 * 1 if there was one. */
#include "crt/timing.h"
#include "crt/trace.h"
#include "expect.h"
#include "model.h"

#include <string.h>

static union {
    uint8_t bytes[ARENA_BYTES];
    int64_t align[2];
} arena __attribute__((aligned(16)));

static union {
    uint8_t bytes[KEPT_BYTES];
    int64_t align[2];
} kept __attribute__((aligned(16)));

static void *base[CRT_BASE_COUNT(2, 2, 3, 0, 1)];
static uint32_t fresh[CRT_FRESH_WORDS(2)];
static void *pointers[6];
static struct crt_graph g;
static const int8_t zeros[24];

/* What the callbacks count; the counter stands still but in a run. */
static struct {
    uint32_t now;
    uint32_t reads;
    uint32_t prepared;
    uint32_t rests;
    uint32_t kernels; /* kernel calls */
    uint32_t cost;    /* ticks of a kernel call */
    uint32_t stop_at; /* `prepare` fails then */
    uint32_t cost_at; /* `prepare` makes it 1 then */
    uint32_t fail_at; /* the hook stops the run then */
} seen;

static uint32_t tick(void *context)
{
    EXPECT(context == &seen);
    seen.reads++;
    return seen.now;
}

#ifndef CRT_NO_HOOK
static int prepare(void *context, struct crt_graph *graph)
{
    EXPECT(context == &seen);
    seen.prepared++;
    seen.now += 1000; /* must not be counted */
    if (seen.prepared == seen.cost_at)
        seen.cost = 1;
    if (seen.prepared == seen.stop_at)
        return -99;
    return crt_graph_set_input(graph, 0, zeros, sizeof zeros);
}

static void rest(void *context)
{
    EXPECT(context == &seen);
    seen.rests++;
    seen.now += 1000;
}

static int hook(void *context, uint32_t step, uint32_t first, uint32_t count,
                const void *rows)
{
    (void)context;
    (void)step;
    (void)first;
    (void)count;
    (void)rows;
    seen.kernels++;
    seen.now += seen.cost;
    return seen.kernels == seen.fail_at;
}
#endif

static struct crt_timing start(uint32_t cost)
{
    struct crt_timing how;
    struct crt_region regions[2];

    regions[0].ptr = arena.bytes;
    regions[0].bytes = sizeof arena.bytes;
    regions[1].ptr = kept.bytes;
    regions[1].bytes = sizeof kept.bytes;
    memset(&seen, 0, sizeof seen);
    seen.cost = cost;
    seen.now = 0xFFFFFF00u; /* wraps soon */
    EXPECT(crt_graph_init(&g, &model, base, fresh, regions, 2) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 0, zeros, 24) == CRT_OK);
    EXPECT(crt_graph_bind_input(&g, 1, zeros, 3) == CRT_OK);
#ifndef CRT_NO_HOOK
    EXPECT(crt_graph_set_hook(&g, hook, NULL) == CRT_OK);
#endif
    memset(&how, 0, sizeof how);
    how.tick = tick;
    how.context = &seen;
    return how;
}

/* @req crt_time_stages:Errors */
static void test_wrong_calls(void)
{
    struct crt_timing how = start(1);
    struct crt_timing_summary summary;
    struct crt_graph none;
    struct crt_lap laps[2];

    memset(&none, 0, sizeof none);
    EXPECT(crt_time_runs(&g, pointers, NULL, laps, 1) == CRT_ERR_NULL);
    EXPECT(crt_time_runs(&g, pointers, &how, NULL, 1) == CRT_ERR_NULL);
    EXPECT(crt_time_runs(&none, pointers, &how, laps, 1) == CRT_ERR_NULL);
    EXPECT(crt_time_stages(&g, pointers, NULL, laps) == CRT_ERR_NULL);
    EXPECT(crt_time_stages(&g, pointers, &how, NULL) == CRT_ERR_NULL);
    EXPECT(crt_time_stages(&none, pointers, &how, laps) == CRT_ERR_NULL);
    how.tick = NULL;
    EXPECT(crt_time_runs(&g, pointers, &how, laps, 1) == CRT_ERR_NULL);
    EXPECT(crt_time_stages(&g, pointers, &how, laps) == CRT_ERR_NULL);
    laps[0].runs = 1;
    laps[1].runs = 0;
    EXPECT(crt_timing_summary_of(NULL, 1, &summary) == CRT_ERR_NULL);
    EXPECT(crt_timing_summary_of(laps, 1, NULL) == CRT_ERR_NULL);
    EXPECT(crt_timing_summary_of(laps, 0, &summary) == CRT_ERR_SIZE);
    EXPECT(crt_timing_summary_of(laps, 2, &summary) == CRT_ERR_SIZE);
}

/* Laps of a counter that stands still: the limit ends them. */
static void test_zero_ticks(void)
{
    struct crt_timing how = start(0);
    struct crt_lap lap;

    how.min_ticks = 5;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == CRT_OK);
    EXPECT(lap.ticks == 0 && lap.runs == 1);
    how.zero_limit = 4;
    seen.reads = 0;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == CRT_OK);
    EXPECT(lap.ticks == 0 && lap.runs == 1 && seen.reads == 2 * 4);
}

#ifndef CRT_NO_HOOK
enum { CALLS = 8 + 4 + 8 + 2 }; /* hook calls of one run */

static void test_runs(void)
{
    struct crt_timing how = start(10);
    struct crt_lap laps[3];

    how.number = 3;
    how.rest = rest;
    EXPECT(crt_time_runs(&g, pointers, &how, laps, 3) == CRT_OK);
    EXPECT(laps[2].ticks == 3 * CALLS * 10 && laps[2].runs == 3);
    EXPECT(seen.kernels == (1 + 3 * 3) * CALLS);
    EXPECT(seen.rests == 3 && seen.reads == 6);
    seen.fail_at = seen.kernels + 2 * CALLS + 3; /* in the second of a lap */
    EXPECT(crt_time_runs(&g, pointers, &how, laps, 3) == CRT_ERR_STOPPED);
    EXPECT(laps[0].runs == 3 && seen.kernels == seen.fail_at);
    seen.rests = 3;
    how.rest_every = 2;
    EXPECT(crt_time_runs(&g, pointers, &how, laps, 3) == CRT_OK);
    EXPECT(seen.rests == 5);
}

/* A lap that is too short grows; the next begins with `number` again. */
/* @req crt_time_runs:Time */
static void test_min_ticks(void)
{
    struct crt_timing how = start(1);
    struct crt_lap laps[2];

    how.min_ticks = 10 * CALLS;
    EXPECT(crt_time_runs(&g, pointers, &how, laps, 2) == CRT_OK);
    EXPECT(laps[0].runs == 11 && laps[0].ticks == 11 * CALLS);
    EXPECT(laps[1].runs == 11);
    EXPECT(seen.kernels == (1 + 1 + 11 + 1 + 11) * CALLS);
    how.number = 10; /* 9 of 10 needed: by 1.618 at least */
    how.min_ticks = 10 * CALLS + 1;
    EXPECT(crt_time_runs(&g, pointers, &how, laps, 1) == CRT_OK);
    EXPECT(laps[0].runs == 17);
}

/* Only the last of many runs takes time: the next lap would need more runs
 * than can be counted. */
static void test_most_runs(void)
{
    struct crt_timing how = start(0);
    struct crt_lap lap;

    how.min_ticks = 0xFFFFFFFFu;
    how.number = 2 * CALLS;
    how.prepare = prepare;
    seen.cost_at = 1 + 2 * CALLS;
    seen.stop_at = seen.cost_at + 1;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == -99);
    EXPECT(lap.runs == 0xFFFFFFFFu && lap.ticks == 0);
}

static void test_prepare(void)
{
    struct crt_timing how = start(10);
    struct crt_lap lap;

    EXPECT(crt_graph_bind_input(&g, 0, NULL, 0) == CRT_OK);
    how.number = 2;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == CRT_ERR_INPUT_MISSING);
    how.prepare = prepare;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == CRT_OK);
    EXPECT(lap.ticks == 2 * CALLS * 10 && seen.prepared == 3);
    seen.stop_at = 4;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == -99);
    seen.stop_at = 6;
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == -99);
    seen.fail_at = seen.kernels + CALLS + 3; /* in the first of two runs */
    EXPECT(crt_time_runs(&g, pointers, &how, &lap, 1) == CRT_ERR_STOPPED);
}

static void test_stages(void)
{
    struct crt_timing how = start(10);
    struct crt_lap laps[2];

    EXPECT(crt_time_stages(&g, pointers, &how, laps) == CRT_OK);
    EXPECT(laps[0].ticks == 80 && laps[0].runs == 1);
    EXPECT(laps[1].ticks == 140 && laps[1].runs == 1);
    how.number = 4;
    how.prepare = prepare;
    EXPECT(crt_time_stages(&g, pointers, &how, laps) == CRT_OK);
    EXPECT(laps[0].ticks == 320 && laps[0].runs == 4);
    EXPECT(laps[1].ticks == 560);
    EXPECT(seen.prepared == 5);
    seen.stop_at = 7;
    EXPECT(crt_time_stages(&g, pointers, &how, laps) == -99);
    seen.fail_at = seen.kernels + CALLS + 3; /* in the first stage */
    EXPECT(crt_time_stages(&g, pointers, &how, laps) == CRT_ERR_STOPPED);
    EXPECT(seen.kernels == seen.fail_at);
    seen.fail_at = seen.kernels + 2 * CALLS - 1; /* in the last stage */
    EXPECT(crt_time_stages(&g, pointers, &how, laps) == CRT_ERR_STOPPED);
    EXPECT(seen.kernels == seen.fail_at);
    seen.stop_at = seen.prepared + 1; /* before the first run */
    EXPECT(crt_time_stages(&g, pointers, &how, laps) == -99);
}
#endif

static void test_summary(void)
{
    static const struct crt_lap mirror[] = {{1, 1}, {2, 1}, {4, 2}, {5, 1}};
    static const struct crt_lap odd[] = {{9, 3}, {1, 4}, {3, 2}};
    static const struct crt_lap low[] = {{0, 1}, {3, 1}, {3, 1}};
    static const struct crt_lap far[] = {{0, 1}, {(uint64_t)1 << 40, 1}};
    static struct crt_lap many[600];
    struct crt_timing_summary s;
    uint32_t i;

    EXPECT(crt_timing_summary_of(mirror, 4, &s) == CRT_OK);
    EXPECT(s.mean == 640 && s.median == 512 && s.min == 256);
    EXPECT(s.max == 1280 && s.std == 384);
    EXPECT(crt_timing_summary_of(odd, 3, &s) == CRT_OK);
    EXPECT(s.mean == 405 && s.median == 384 && s.min == 64 && s.max == 768);
    EXPECT(s.std == 287); /* 287.8 */
    EXPECT(crt_timing_summary_of(far, 2, &s) == CRT_OK);
    EXPECT(s.std == (uint64_t)1 << 47);
    EXPECT(crt_timing_summary_of(low, 3, &s) == CRT_OK);
    EXPECT(s.mean == 512 && s.std == 362); /* 362.03 */
    for (i = 0; i < 600; i++) {
        many[i].ticks = i % 2 == 0 ? 0 : (uint64_t)1 << 24;
        many[i].runs = 1;
    }
    EXPECT(crt_timing_summary_of(many, 600, &s) == CRT_OK);
    EXPECT(s.std == (uint64_t)1 << 31 && s.median == s.mean);
}

#ifndef CRT_NO_HOOK
static void test_trace(void)
{
    uint32_t now = 7;
    struct crt_trace_mark marks[2];
    struct crt_trace trace;

    trace.clock = &now;
    trace.next = marks;
    trace.end = marks + 2;
    crt_trace_run(&trace); /* @req crt_trace_run */
    now = 9;
    EXPECT(crt_trace_hook(&trace, 3, 5, 1, NULL) == CRT_OK);
    EXPECT(crt_trace_hook(&trace, 4, 6, 1, NULL) == CRT_OK); /* no place */
    EXPECT(trace.next == trace.end);
    EXPECT(marks[0].time == 7 && marks[0].step == CRT_TRACE_RUN);
    EXPECT(marks[0].row == 0 && marks[1].time == 9);
    EXPECT(marks[1].step == 3 && marks[1].row == 5);
}
#endif

int main(void)
{
    test_wrong_calls();
    test_zero_ticks();
#ifndef CRT_NO_HOOK
    test_runs();
    test_min_ticks();
    test_most_runs();
    test_prepare();
    test_stages();
    test_trace();
#endif
    test_summary();
    return failures != 0;
}
