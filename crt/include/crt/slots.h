/* crt/slots.h: where an instance keeps what in crt_graph.base, for crt's own
 * sources; firmware has no use for it. Knows nothing of running. */
#ifndef CRT_SLOTS_H
#define CRT_SLOTS_H

#include "crt/graph.h"
#include "crt/port.h"

#ifdef __cplusplus
extern "C" {
#endif

CRT_C_BODIES

/* Tensors are numbered: inputs, then outputs, then parameters. */
static inline uint32_t crt_first_parameter(const struct crt_model *model)
{
    return (uint32_t)model->input_count + model->output_count;
}

static inline int crt_is_ready(const struct crt_graph *g)
{
    return g != NULL && g->model != NULL;
}

/* Where the base pointer of a tensor is kept. */
static inline void **crt_slot(const struct crt_graph *g, uint32_t tensor)
{
    return &g->base[g->model->region_count + tensor];
}

/* Where it is kept which crt_params a parameter is from. */
static inline void **crt_source(const struct crt_graph *g, uint32_t parameter)
{
    const struct crt_model *model = g->model;

    return crt_slot(g, crt_first_parameter(model) + model->parameter_count +
                           parameter);
}

/* Where the device table is kept; only if the model has devices. */
static inline void **crt_devices(const struct crt_graph *g)
{
    return crt_source(g, g->model->parameter_count);
}

/* Whether the instance has its devices, if the model needs any. */
static inline int crt_has_devices(const struct crt_graph *g)
{
    return g->model->accelerator == NULL || *crt_devices(g) != NULL;
}

/* Whether a tensor has its home in the memory of a device, not the CPU's. */
static inline int crt_is_remote(const struct crt_graph *g,
                                const struct crt_tensor *tensor)
{
    return g->model->accelerator != NULL &&
           (tensor->flags & CRT_TENSOR_LAZY) == 0u &&
           g->model->region_devices[tensor->region] != 0u;
}

/* The memory of a tensor that the plan has some for: it is not lazy. */
static inline void *crt_place(const struct crt_graph *g,
                              const struct crt_tensor *tensor)
{
    return (uint8_t *)g->base[tensor->region] + tensor->at;
}

/* The memory that the plan has for a tensor; NULL: none. */
static inline void *crt_home(const struct crt_graph *g,
                             const struct crt_tensor *tensor)
{
    if ((tensor->flags & CRT_TENSOR_LAZY) != 0u) {
        return NULL;
    }
    return crt_place(g, tensor);
}

static inline int crt_is_aligned(const void *ptr, uint32_t align)
{
    /* MISRA 11.6: only the lower bits are looked at */
    return ((uintptr_t)ptr & (align - 1u)) == 0u;
}

static inline uint32_t crt_fresh_bit(uint32_t input)
{
    return (uint32_t)1 << (input % 32u);
}

/* An input is to be given again. */
static inline void crt_take_back(struct crt_graph *g, uint32_t input)
{
    g->fresh[input / 32u] &= ~crt_fresh_bit(input);
}

CRT_C_BODIES_END

/* Gives up a run that is under way, then keeps others off the memory that
 * instances share, until crt_turn_end or _leave. If another had it since, g is
 * reset.
 *
 * Errors  CRT_ERR_BUSY */
int crt_turn_begin(struct crt_graph *g);

/* What is in the memory is this instance's from here on. */
void crt_turn_end(const struct crt_graph *g);

/* What is in the memory is whose it was. */
void crt_turn_leave(const struct crt_graph *g);

/* Gives up a run that is under way between two stages. */
void crt_stop(struct crt_graph *g);

/* Copies to a tensor's home, its crt_place, on whatever device.
 *
 * Errors  CRT_ERR_DEVICE */
int crt_fill(struct crt_graph *g, const struct crt_tensor *tensor, void *home,
             const void *data);

/* Whether a tensor is where the plan has memory for it, and has all these
 * flags. A bound one is elsewhere. */
int crt_is_home(const struct crt_graph *g, uint32_t t, uint32_t flags);

/* Takes back the inputs that are home and have all these flags. */
void crt_take_back_home(struct crt_graph *g, uint32_t flags);

/* Whether tensor `t` may be bound to `bytes` from data on: nothing of a plan's
 * that runs write is there.
 *
 * Errors  CRT_ERR_OVERLAP */
int crt_check_place(const struct crt_graph *g, uint32_t t, const void *data,
                    uint32_t bytes);

/* From here on g takes turns; the turn then knows of its memory. NULL: none.
 *
 * Errors  CRT_ERR_REGION, CRT_ERR_OVERLAP; g is as before */
int crt_turn_join(struct crt_graph *g, struct crt_turn *turn);

/* The first input that was not given; NULL: none. */
const struct crt_tensor *crt_find_not_given(const struct crt_graph *g);

/* A run, from its checks on: all is bound and given, memory of inputs is used
 * up, shared storage is this instance's until crt_end. */
int crt_begin(struct crt_graph *g);
int crt_end(struct crt_graph *g, int error);

/* Computes a stage. */
int crt_run_stage(struct crt_graph *g, void **p, uint32_t index);

/* Computes a band of a step, of one image, and tells the hook of it.
 *
 * Errors  CRT_ERR_STOPPED */
int crt_run_band(const struct crt_graph *g, const struct crt_step *step,
                 void **p, uint32_t image, uint32_t band);

/* Computes all bands of a step, and tells the hook of each.
 *
 * Errors  CRT_ERR_STOPPED */
int crt_run_bands(const struct crt_graph *g, const struct crt_step *step,
                  void **p);

/* The index of a name among `count` tensors from `first` on.
 *
 * Errors  CRT_ERR_NAME */
int crt_find_tensor(const struct crt_model *model, uint32_t first,
                    uint32_t count, const char *name);

#ifdef __cplusplus
}
#endif

#endif
