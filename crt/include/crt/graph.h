/* crt/graph.h: one instance of a model: give inputs, run, take outputs.
 * Knows no operator; allocates nothing: all memory is the caller's. */
#ifndef CRT_GRAPH_H
#define CRT_GRAPH_H

#include "crt/abi.h"
#include "crt/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For every function of this header:
 *
 * Thread  set / run / get on distinct instances may run at the same time; one
 *         instance belongs to one thread; init and reset take your own lock
 * Errors  every int return is 0 or a negative enum crt_error; a NULL or never
 *         initialised graph (all zero) gives CRT_ERR_NULL, or NULL where a
 *         pointer is returned. Pointers that are neither are trusted. */

/* Objects made for this ABI refer to this symbol: another ABI does not link. */
extern const uint32_t crt_abi_1;

#ifndef CRT_NO_HOOK
/* Called after each kernel call with the rows that it wrote.
 *
 * Shapes  `count` rows that lie one after the other in memory from `rows` on;
 *         `first_row` counts from the first row of the first image
 * Owner   rows is borrowed until the hook returns
 * Errors  non-zero stops the run with CRT_ERR_STOPPED */
typedef int crt_hook(void *context, uint32_t step, uint32_t first_row,
                     uint32_t count, const void *rows);
#endif

/* An instance. Zero it or leave it static; read only failed_step.
 *
 * Owner   the caller; what it points to too */
struct crt_graph {
    const struct crt_model *model;
    void **base;     /* per region, then per input, then per output */
    uint32_t *fresh; /* one bit per input: holds what a run may read */
#ifndef CRT_NO_HOOK
    crt_hook *hook; /* NULL: none */
    void *hook_context;
#endif
    int16_t failed_step; /* where the hook stopped the last run; -1: nowhere */
    uint16_t stage;      /* that comes next; 0: no run is under way */
    uint8_t consumed;    /* a run has begun since init or reset */
    uint8_t valid;       /* outputs hold the last run's result */
};

/* Words that crt_graph.fresh needs for n inputs. */
#define CRT_FRESH_WORDS(n) (((n) + 31u) / 32u)

/* Binds a model to memory; all inputs and outputs are at their homes.
 *
 * Shapes  base[region_count + input_count + output_count],
 *         fresh[CRT_FRESH_WORDS(input_count)], regions[count]
 * Owner   all of it stays the caller's, and must outlive g
 * Errors  CRT_ERR_NULL, CRT_ERR_ABI, CRT_ERR_REGION, CRT_ERR_ALIGN; g is then
 *         as never initialised */
int crt_graph_init(struct crt_graph *g, const struct crt_model *model,
                   void **base, uint32_t *fresh,
                   const struct crt_region *regions, uint32_t count);

/* Forgets inputs that were set or borrowed, and all results; what is bound
 * stays bound. */
int crt_graph_reset(struct crt_graph *g);

/* Copies an input in, to its home; ends a binding.
 *
 * Units   bytes: exactly crt_tensor.bytes
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE */
int crt_graph_set_input(struct crt_graph *g, uint32_t index, const void *data,
                        uint32_t bytes);

/* Lets runs read an input where it is, until bound again. Never written to:
 * it may be in flash. It counts as given for every run. NULL: back home.
 *
 * Units   bytes: exactly crt_tensor.bytes; aligned to crt_tensor.align
 * Owner   the caller; must stay until the next bind or set of this input
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_ALIGN */
int crt_graph_bind_input(struct crt_graph *g, uint32_t index, const void *data,
                         uint32_t bytes);

/* The memory of an input, to be filled before the next run; counts as given.
 * Of a bound input, what was bound.
 *
 * Owner   g; write only until the next run
 * Errors  NULL for a wrong index */
void *crt_graph_input(struct crt_graph *g, uint32_t index);

/* Lets runs write an output where the caller wants it. NULL: back home.
 *
 * Units   bytes: exactly crt_tensor.bytes; aligned to crt_tensor.align
 * Owner   the caller; must stay until the next bind of this output
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_ALIGN */
int crt_graph_bind_output(struct crt_graph *g, uint32_t index, void *data,
                          uint32_t bytes);

/* The memory of an output: its home, or what was bound.
 *
 * Owner   g; holds a result from a good run until the next run, or until an
 *         input that shares its memory (CRT_TENSOR_CONSUMED) is given
 * Errors  NULL for a wrong index */
const void *crt_graph_output(const struct crt_graph *g, uint32_t index);

/* Copies an output out.
 *
 * Units   bytes: exactly crt_tensor.bytes
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_NO_OUTPUT */
int crt_graph_get_output(const struct crt_graph *g, uint32_t index, void *data,
                         uint32_t bytes);

/* Runs the model once.
 *
 * Shapes  pointers[model->pointer_count], scratch for this call
 * Errors  CRT_ERR_INPUT_MISSING and CRT_ERR_INPUT_CONSUMED before anything is
 *         touched; CRT_ERR_STOPPED (failed_step tells where) */
int crt_graph_run(struct crt_graph *g, void **pointers);

/* Runs one stage, for timing; 0, 1, ... stage_count - 1 are one run.
 *
 * Errors  as crt_graph_run; CRT_ERR_INDEX; CRT_ERR_STAGE out of order, or when
 *         an input was given or g was reset since stage 0 */
int crt_graph_run_stage(struct crt_graph *g, void **pointers, uint32_t stage);

/* How many, which index (or CRT_ERR_NAME), and shape, type and scale. */
int crt_graph_input_count(const struct crt_graph *g);
int crt_graph_output_count(const struct crt_graph *g);
int crt_graph_find_input(const struct crt_graph *g, const char *name);
int crt_graph_find_output(const struct crt_graph *g, const char *name);
const struct crt_tensor *crt_graph_input_info(const struct crt_graph *g,
                                              uint32_t index);
const struct crt_tensor *crt_graph_output_info(const struct crt_graph *g,
                                               uint32_t index);

#ifndef CRT_NO_HOOK
/* Sets the hook, or takes it away (NULL). Its context is handed through. */
int crt_graph_set_hook(struct crt_graph *g, crt_hook *hook, void *context);
#endif

#ifdef __cplusplus
}
#endif

#endif
