/* crt/trace.h: marks of layers with the time, in an array that a debugger or a
 * console reads out: a stream of the Common Trace Format, 1.8, as it is.
 * Knows no clock and no operator. Linked only where it is used. */
#ifndef CRT_TRACE_H
#define CRT_TRACE_H

#include "crt/graph.h"
#include "crt/inline.h"

#ifndef CRT_NO_HOOK

/* A mark: a band of a step is done, or a run begins. */
struct crt_trace_mark {
    uint32_t time; /* of the counter */
    uint16_t step; /* CRT_TRACE_RUN: a run begins */
    uint16_t row;  /* the first that the step wrote */
};

#define CRT_TRACE_RUN 0xFFFFu

/* Where marks go; fill in all three.
 *
 * Units   clock: the address of a counter that goes up, and may wrap at 32
 *         bits; of a Cortex-M3 to M85 DWT_CYCCNT, 0xE0001004
 * Owner   the caller; marks are written from `next` on, to before `end` */
struct crt_trace {
    const volatile uint32_t *clock;
    struct crt_trace_mark *next;
    struct crt_trace_mark *end;
};

/* The hook: crt_graph_set_hook(&m.graph, crt_trace_hook, &trace). Marks that
 * have no place any more are left out.
 *
 * Time    14 instructions of a Cortex-M4 */
static inline int crt_trace_hook(void *context, uint32_t step,
                                 uint32_t first_row, uint32_t count,
                                 const void *rows);

/* Marks that a run begins: right before it. */
static inline void crt_trace_run(struct crt_trace *trace);

CRT_C_BODIES

static inline int crt_trace_hook(void *context, uint32_t step,
                                 uint32_t first_row, uint32_t count,
                                 const void *rows)
{
    struct crt_trace *trace = (struct crt_trace *)context;
    struct crt_trace_mark *mark = trace->next;

    (void)count;
    (void)rows;
    if (mark != trace->end) {
        mark->time = *trace->clock;
        mark->step = (uint16_t)step;
        mark->row = (uint16_t)first_row;
        trace->next = mark + 1;
    }
    return CRT_OK;
}

static inline void crt_trace_run(struct crt_trace *trace)
{
    (void)crt_trace_hook(trace, CRT_TRACE_RUN, 0, 0, NULL);
}

CRT_C_BODIES_END

#endif

#endif
