/* crt/device.h: the interface of an accelerator or another core for a graph.
 * Knows no graph; implemented by the user, see docs/devices.md. */
#ifndef CRT_DEVICE_H
#define CRT_DEVICE_H

#include "crt/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kind of device; const, in flash. Each call may return before its work is
 * done, if work is done in the order of the calls; only `wait` must wait.
 *
 * Owner   `context` is the device's own; addresses on the device are never
 *         read or written by crt. Constants stay in flash: the device reads
 *         them there
 * Errors  non-zero stops the run with CRT_ERR_DEVICE */
struct crt_device_api {
    /* from: memory of the CPU, left alone until waited for */
    int (*copy_in)(void *context, void *to, const void *from, uint32_t bytes);
    /* to: memory of the CPU */
    int (*copy_out)(void *context, void *to, const void *from, uint32_t bytes);
    /* Computes a step, as crt_step_run does; base stays until waited for. */
    int (*launch)(void *context, const struct crt_model *model, uint32_t step,
                  void *const *base);
    /* Returns when all is done. */
    int (*wait)(void *context);
};

/* A device of an instance. The first of a table is the CPU, its api NULL; so
 * may others be: further names for the CPU and its memory. */
struct crt_device {
    const struct crt_device_api *api;
    void *context; /* handed to every call */
};

struct crt_graph;

/* How crt works with devices: models that have some refer to it, so that the
 * code is not in firmware without. Firmware has no use for it. */
struct crt_accelerator {
    /* CRT_ON_CPU: the CPU must compute this step */
    int (*step)(struct crt_graph *g, uint32_t step, uint32_t device);
    int (*copy_in)(struct crt_graph *g, const struct crt_tensor *tensor,
                   const void *from);
    int (*copy_out)(const struct crt_graph *g, const struct crt_tensor *tensor,
                    void *to, const void *from);
    /* for every device, also when one fails */
    int (*wait)(struct crt_graph *g);
};

#define CRT_ON_CPU 1

extern const struct crt_accelerator crt_accelerator;

/* Computes one step of a model, as a device does in its `launch`. No hook.
 *
 * Shapes  base as of the instance; pointers[model->pointer_count]
 * Thread  re-entrant for other memory
 * Errors  CRT_ERR_INDEX; CRT_ERR_TASK: a copy, a wait or another of crt's own
 */
int crt_step_run(const struct crt_model *model, uint32_t step,
                 void *const *base, void **pointers);

#ifdef __cplusplus
}
#endif

#endif
