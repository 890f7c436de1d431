/* crt/graph.h: one instance of a model: give inputs, run, take outputs.
 * Knows no operator; allocates nothing: all memory is the caller's. */
#ifndef CRT_GRAPH_H
#define CRT_GRAPH_H

#include "crt/device.h"
#include "crt/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For every function of this header:
 *
 * Thread  set / run / get on distinct instances may run at the same time; one
 *         instance belongs to one thread; init and reset take your own lock
 * Errors  every int return is 0 or a negative code of error.h; a NULL or never
 *         initialised graph (all zero) gives CRT_ERR_NULL, or NULL where a
 *         pointer is returned. Pointers that are neither are trusted. */

/* Objects made for this ABI refer to this symbol: another ABI does not link. */
extern const uint32_t crt_abi_9;

#ifndef CRT_NO_HOOK
/* The CPU calls this after each kernel, with the rows that the kernel wrote.
 *
 * Shapes  `count` rows that lie one after the other in memory from `rows` on;
 *         `first_row` counts from the first row of the first image
 * Owner   rows is borrowed until the hook returns
 * Errors  non-zero stops the run with CRT_ERR_STOPPED */
typedef int crt_hook(void *context, uint32_t step, uint32_t first_row,
                     uint32_t count, const void *rows);
#endif

/* Memory that several instances use in turn: an instance takes it over when an
 * input of it is set or it starts a run; the others then lose their inputs and
 * results. The caller owns it: call crt_turn_init, then set `wait` and
 * `context`; read no other member. */
struct crt_turn {
    const struct crt_graph *owner; /* only compared, never followed */
    uint32_t running;
    /* Called with is_taken = 1 if another instance is in the middle of a run:
     * waits, for example for a binary semaphore, and returns 0 to try again.
     * With 0 after each use of the memory: gives the semaphore. If it is NULL,
     * or returns non-zero, the caller gets CRT_ERR_BUSY */
    int (*wait)(struct crt_turn *turn, int is_taken);
    void *context; /* for `wait` */
#ifndef CRT_NO_OVERLAP
    struct crt_region memory[CRT_TURN_REGIONS]; /* of all that take turns */
#endif
};

/* An array somewhere, for checked binding.
 *
 * Shapes  dims[rank], outermost first; strides[rank] */
struct crt_array {
    void *data;
    const int32_t *dims;
    const int32_t *strides; /* in elements; NULL: row-major without gaps */
    uint8_t dtype;          /* enum crt_dtype */
    uint8_t rank;
};

/* An instance. Zero it or leave it static; read only failed_step.
 *
 * Owner   the caller; what it points to too */
struct crt_graph {
    const struct crt_model *model;
    void **base;     /* see CRT_BASE_COUNT */
    uint32_t *fresh; /* one bit per input: holds what a run may read */
#ifndef CRT_NO_HOOK
    crt_hook *hook; /* NULL: none */
    void *hook_context;
#endif
    struct crt_turn *turn; /* NULL: the memory is this instance's alone */
    int16_t failed_step;   /* the step that stopped the last run; -1: none */
    uint16_t stage;        /* the next stage; 0: no run is under way */
    uint8_t consumed;      /* a run has begun since init or reset */
    uint8_t valid;         /* outputs hold the last run's result */
    uint8_t ready;         /* crt_graph_setup has found nothing missing */
};

/* Words that crt_graph.fresh needs for n inputs. */
#define CRT_FRESH_WORDS(n) (((n) + 31u) / 32u)

/* Binds a model to memory; all inputs and outputs are at their homes.
 *
 * Shapes  base[CRT_BASE_COUNT(...)], fresh[CRT_FRESH_WORDS(input_count)],
 *         regions[count]
 * Owner   all of it stays the caller's, and must outlive g. Old state is not
 *         read: crt_graph_release_params first, or its image stays in use
 * Errors  CRT_ERR_NULL, CRT_ERR_ABI, CRT_ERR_REGION, CRT_ERR_ALIGN; g is then
 *         as never initialised */
int crt_graph_init(struct crt_graph *g, const struct crt_model *model,
                   void **base, uint32_t *fresh,
                   const struct crt_region *regions, uint32_t count);

/* Gives an instance its devices; needed where device_count > 1.
 *
 * Shapes  devices[count], count = device_count of the model
 * Owner   the caller; must outlive g
 * Errors  CRT_ERR_NULL; CRT_ERR_DEVICE: another count, or the first is not the
 *         CPU */
int crt_graph_set_devices(struct crt_graph *g, const struct crt_device *devices,
                          uint32_t count);

/* Makes g use its regions in turn with every other instance that has the same
 * `turn`; init them all with the same memory, as large as the largest needs.
 * While one is in the middle of a run, the others can neither run nor set
 * inputs nor get outputs. Bind after all share, and outside of this memory.
 *
 * Owner   turn is the caller's and outlives g; NULL ends it. A
 *         model with state cannot share, it would be lost: CRT_ERR_STATE
 * Thread  instances may be used by different threads (but see crt/port.h on
 *         processors without atomic words), except for what crt_graph_input
 *         and crt_graph_output return: the memory behind it needs your lock
 * Errors  CRT_ERR_NULL; CRT_ERR_REGION: over CRT_TURN_REGIONS; CRT_ERR_OVERLAP:
 *         something is bound there already; later CRT_ERR_BUSY */
int crt_graph_share_storage(struct crt_graph *g, struct crt_turn *turn);

/* Sets `turn` to its first state: no instance owns the memory, runs or waits.
 * Call it also after a reset that keeps RAM, and init the instances again:
 * otherwise an interrupted run blocks all for ever (CRT_ERR_BUSY).
 *
 * Errors  CRT_ERR_NULL */
int crt_turn_init(struct crt_turn *turn);

/* Checks once, instead of at the next run, that all is bound.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_DEVICE, CRT_ERR_UNBOUND: crt_graph_missing */
int crt_graph_setup(struct crt_graph *g);

/* The tensor for which a run would fail: a lazy input or output or a parameter
 * that is not bound; if all are bound, an input that was not given. NULL: none.
 *
 * Owner   the model */
const struct crt_tensor *crt_graph_missing(const struct crt_graph *g);

/* Forgets inputs that were set or borrowed, and all results; bindings are
 * kept. State that is kept from run to run returns to its first value. */
int crt_graph_reset(struct crt_graph *g);

/* Copies, or converts (CRT_TENSOR_CONVERTED), an input to its home; unbinds.
 *
 * Units   bytes: exactly crt_tensor.bytes; data: all or nothing in the home
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_LAZY,
 *         CRT_ERR_BUSY, CRT_ERR_DEVICE; converted: CRT_ERR_ALIGN, OVERLAP */
int crt_graph_set_input(struct crt_graph *g, uint32_t index, const void *data,
                        uint32_t bytes);

/* Lets runs read an input in place, until it is bound again. It is only read,
 * so it may be in flash. It counts as given for every run. NULL: back home.
 * For an input whose home is on a device: an address there.
 *
 * Units   bytes: exactly crt_tensor.bytes; aligned to crt_tensor.align
 * Owner   the caller; must stay until the next bind or set of this input
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_ALIGN;
 *         CRT_ERR_OVERLAP: in memory of g, or of a model that shares it, except
 *         its home, or the home of an input that runs keep */
int crt_graph_bind_input(struct crt_graph *g, uint32_t index, const void *data,
                         uint32_t bytes);

/* Does the same as crt_graph_bind_input, and checks type, shape and strides
 * of the array.
 *
 * Errors  as there; CRT_ERR_DTYPE, CRT_ERR_SHAPE, CRT_ERR_STRIDES */
int crt_graph_bind_input_array(struct crt_graph *g, uint32_t index,
                               const struct crt_array *array);

/* The memory of an input, to be filled before the next run; counts as given.
 * For a bound input, the bound memory.
 *
 * Owner   g; write only until the next run
 * Errors  NULL for a wrong index, an unbound lazy or converted input, one on a
 *         device, or memory that another instance is running in */
void *crt_graph_input(struct crt_graph *g, uint32_t index);

/* Lets runs write an output to the caller's memory. NULL: back home. For an
 * output whose home is on a device: an address there.
 *
 * Units   bytes: exactly crt_tensor.bytes; aligned to crt_tensor.align
 * Owner   the caller; must stay until the next bind. Only this is bound there
 * Errors  as crt_graph_bind_input; CRT_ERR_OVERLAP */
int crt_graph_bind_output(struct crt_graph *g, uint32_t index, void *data,
                          uint32_t bytes);

/* Does the same as crt_graph_bind_output, and checks the array.
 *
 * Errors  as there; CRT_ERR_DTYPE, CRT_ERR_SHAPE, CRT_ERR_STRIDES */
int crt_graph_bind_output_array(struct crt_graph *g, uint32_t index,
                                const struct crt_array *array);

/* Checks that an array fits a tensor: type, shape, no gaps, alignment.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_DTYPE, CRT_ERR_SHAPE, CRT_ERR_STRIDES,
 *         CRT_ERR_ALIGN */
int crt_array_check(const struct crt_array *array,
                    const struct crt_tensor *tensor);

/* The memory of an output: its home, or the bound memory.
 *
 * Owner   g; holds a result from a good run until the next run, or until an
 *         input that shares its memory (CRT_TENSOR_CONSUMED) is given
 * Errors  NULL for a wrong index or an output on a device */
const void *crt_graph_output(const struct crt_graph *g, uint32_t index);

/* Copies an output to the caller.
 *
 * Units   bytes: exactly crt_tensor.bytes; data must not overlap the output
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_NO_OUTPUT,
 *         CRT_ERR_BUSY, CRT_ERR_DEVICE */
int crt_graph_get_output(const struct crt_graph *g, uint32_t index, void *data,
                         uint32_t bytes);

/* Runs the model once.
 *
 * Shapes  pointers[model->pointer_count], scratch for this call
 * Errors  CRT_ERR_UNBOUND, CRT_ERR_INPUT_MISSING, CRT_ERR_INPUT_CONSUMED and
 *         CRT_ERR_BUSY before anything is touched; CRT_ERR_STOPPED,
 *         CRT_ERR_UNPACK, CRT_ERR_DEVICE: failed_step is the step, -1 if a
 *         device failed only in its wait. No device is then still working */
int crt_graph_run(struct crt_graph *g, void **pointers);

/* Runs one stage, and waits for all devices: for timing. 0, 1, ... stage_count
 * - 1 are one run.
 *
 * Errors  as crt_graph_run; CRT_ERR_INDEX; CRT_ERR_STAGE out of order, or when
 *         an input was given or g was reset since stage 0 */
int crt_graph_run_stage(struct crt_graph *g, void **pointers, uint32_t stage);

/* The number, the index by name (or CRT_ERR_NAME), shape, type and scale. */
int crt_graph_input_count(const struct crt_graph *g);
int crt_graph_output_count(const struct crt_graph *g);
int crt_graph_find_input(const struct crt_graph *g, const char *name);
int crt_graph_find_output(const struct crt_graph *g, const char *name);
const struct crt_tensor *crt_graph_input_info(const struct crt_graph *g,
                                              uint32_t index);
const struct crt_tensor *crt_graph_output_info(const struct crt_graph *g,
                                               uint32_t index);

#ifndef CRT_NO_HOOK
/* Sets the hook, or removes it (NULL). The context is passed to each call. */
int crt_graph_set_hook(struct crt_graph *g, crt_hook *hook, void *context);
#endif

#ifdef __cplusplus
}
#endif

#endif
