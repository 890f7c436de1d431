/* crt/timing.h: how long runs of a graph take, by a counter of the caller's.
 * Integers only, for bare metal; knows no clock and no operator. */
#ifndef CRT_TIMING_H
#define CRT_TIMING_H

#include "crt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How to measure. Zero it, then give at least `tick`. */
struct crt_timing {
    /* Reads a counter that goes up: of cycles, of microseconds, ... It may wrap
     * at 32 bits; what is timed in one piece must be shorter than that. */
    uint32_t (*tick)(void *context);
    /* Before each run, untimed: gives inputs again, say. Each run is then
     * timed by itself. NULL: the runs of a lap follow each other. Non-zero, a
     * crt_error or your own, ends the measurement. */
    int (*prepare)(void *context, struct crt_graph *g);
    /* Between laps: lets the chip cool down. NULL: nothing */
    void (*rest)(void *context);
    void *context;       /* handed to all three */
    uint32_t number;     /* runs of a lap to begin with; 0: 1 */
    uint32_t min_ticks;  /* a lap is repeated, longer, until it takes these */
    uint32_t zero_limit; /* laps that may take no tick at all; 0: 1 */
    uint32_t rest_every; /* laps from one rest to the next; 0: 1 */
};

/* So many runs, or stages, in one measurement. */
struct crt_lap {
    uint64_t ticks;
    uint32_t runs;
};

/* Of several laps.
 *
 * Units   1/256 tick for one run; std is that of all laps (divided by count) */
struct crt_timing_summary {
    uint64_t mean;
    uint64_t median;
    uint64_t min;
    uint64_t max;
    uint64_t std;
};

/* Runs the graph once unmeasured, then measures `count` laps of whole runs.
 *
 * Shapes  pointers as in crt_graph_run; laps[count]
 * Time    each lap begins anew with `number` runs; one that is shorter than
 *         min_ticks grows to what would take that long, by 1.6 at least
 * Errors  CRT_ERR_NULL; those of crt_graph_run; what `prepare` returned */
int crt_time_runs(struct crt_graph *g, void **pointers,
                  const struct crt_timing *how, struct crt_lap *laps,
                  uint32_t count);

/* Runs the graph once unmeasured, then how->number times stage by stage.
 *
 * Shapes  laps[stage_count of the model]; min_ticks and rest are not used
 * Errors  as crt_time_runs */
int crt_time_stages(struct crt_graph *g, void **pointers,
                    const struct crt_timing *how, struct crt_lap *laps);

/* Shapes  laps[count]
 * Time    count squared
 * Errors  CRT_ERR_NULL; CRT_ERR_SIZE: count is 0, or a lap has no runs */
int crt_timing_summary_of(const struct crt_lap *laps, uint32_t count,
                          struct crt_timing_summary *summary);

#ifdef __cplusplus
}
#endif

#endif
