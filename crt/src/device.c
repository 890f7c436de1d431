/* device.c: steps and tensors on other devices, and the copies between.
 * Knows no device but by crt/device.h. Linked only where a model has some. */
#include "crt/slots.h"

/* A device of the instance; NULL: the CPU does its work. */
static const struct crt_device *device_of(const struct crt_graph *g,
                                          uint32_t index)
{
    const struct crt_device *devices =
        (const struct crt_device *)*crt_devices(g);

    return devices[index].api == NULL ? NULL : &devices[index];
}

static const struct crt_device *home_of(const struct crt_graph *g,
                                        const struct crt_tensor *tensor)
{
    return device_of(g, g->model->region_devices[tensor->region]);
}

static int status(int failed)
{
    return failed != 0 ? CRT_ERR_DEVICE : CRT_OK;
}

static int copy_in(struct crt_graph *g, const struct crt_tensor *tensor,
                   const void *from)
{
    const struct crt_device *d;
    void *to = crt_place(g, tensor);

    if (*crt_devices(g) == NULL) {
        return CRT_ERR_DEVICE;
    }
    d = home_of(g, tensor);
    if (d == NULL) {
        crt_copy(to, from, tensor->bytes);
        return CRT_OK;
    }
    return status(d->api->copy_in(d->context, to, from, tensor->bytes) != 0 ||
                  d->api->wait(d->context) != 0);
}

static int copy_out(const struct crt_graph *g, const struct crt_tensor *tensor,
                    void *to, const void *from)
{
    const struct crt_device *d = home_of(g, tensor);

    if (d == NULL) {
        crt_copy(to, from, tensor->bytes);
        return CRT_OK;
    }
    return status(d->api->copy_out(d->context, to, from, tensor->bytes) != 0 ||
                  d->api->wait(d->context) != 0);
}

static int wait_for(const struct crt_graph *g, uint32_t device)
{
    const struct crt_device *d = device_of(g, device);

    return d == NULL ? CRT_OK : status(d->api->wait(d->context));
}

/* Nothing goes on behind the caller's back after a run. */
static int wait_for_all(struct crt_graph *g)
{
    uint32_t i;
    int error = CRT_OK;

    for (i = 1; i < g->model->device_count; i++) {
        if (wait_for(g, i) != CRT_OK) {
            error = CRT_ERR_DEVICE;
        }
    }
    return error;
}

static int copy(const struct crt_graph *g, const struct crt_step *step)
{
    const struct crt_operand *o = step->operands;
    const struct crt_device *from = device_of(g, (uint32_t)step->args[1]);
    const struct crt_device *to = device_of(g, (uint32_t)step->args[2]);
    uint32_t bytes = (uint32_t)step->args[3];
    void *target = (uint8_t *)g->base[o[0].buffer] + o[0].at;
    const void *source = (const uint8_t *)g->base[o[1].buffer] + o[1].at;

    if (to != NULL) {
        return status(to->api->copy_in(to->context, target, source, bytes));
    }
    if (from != NULL) {
        return status(
            from->api->copy_out(from->context, target, source, bytes));
    }
    crt_copy(target, source, bytes);
    return CRT_OK;
}

static int run_step(struct crt_graph *g, uint32_t index, uint32_t device)
{
    const struct crt_step *step = &g->model->steps[index];
    const struct crt_device *d = device_of(g, device);

    if (step->kernel == NULL && step->args[0] == (int32_t)CRT_TASK_COPY) {
        return copy(g, step);
    }
    if (step->kernel == NULL) {
        return wait_for(g, (uint32_t)step->args[1]);
    }
    if (d == NULL) {
        return CRT_ON_CPU;
    }
    return status(d->api->launch(d->context, g->model, index, g->base));
}

const struct crt_accelerator crt_accelerator = {run_step, copy_in, copy_out,
                                                wait_for_all};

int crt_graph_set_devices(struct crt_graph *g, const struct crt_device *devices,
                          uint32_t count)
{
    if (!crt_is_ready(g) || devices == NULL) {
        return CRT_ERR_NULL;
    }
    if (count != g->model->device_count || devices[0].api != NULL) {
        return CRT_ERR_DEVICE;
    }
    if (g->model->accelerator != NULL) {
        *crt_devices(g) = crt_unconst(devices);
    }
    return CRT_OK;
}
