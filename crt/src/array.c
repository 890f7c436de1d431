/* array.c: memory of the caller's as inputs and outputs, checked: what it
 * holds, and where it lies. Knows nothing of running. */
#include "crt/slots.h"

static int check_dims(const struct crt_array *array,
                      const struct crt_tensor *tensor)
{
    uint32_t i;

    if (array->rank != tensor->rank) {
        return CRT_ERR_SHAPE;
    }
    if (array->dims == NULL && array->rank > 0u) {
        return CRT_ERR_NULL;
    }
    for (i = 0; i < array->rank; i++) {
        if (array->dims[i] != tensor->dims[i]) {
            return CRT_ERR_SHAPE;
        }
    }
    return CRT_OK;
}

/* Row-major without gaps; the stride of an axis of one does not matter. */
static int check_strides(const struct crt_array *array)
{
    uint32_t want = 1; /* as many elements as a tensor's bytes: fits */
    uint32_t i;

    if (array->strides == NULL) {
        return CRT_OK;
    }
    for (i = array->rank; i != 0u; i--) {
        if (array->dims[i - 1u] != 1 &&
            (uint32_t)array->strides[i - 1u] != want) {
            return CRT_ERR_STRIDES;
        }
        want *= (uint32_t)array->dims[i - 1u];
    }
    return CRT_OK;
}

int crt_array_check(const struct crt_array *array,
                    const struct crt_tensor *tensor)
{
    int error;

    if (array == NULL || tensor == NULL || array->data == NULL) {
        return CRT_ERR_NULL;
    }
    if (array->dtype != tensor->dtype) {
        return CRT_ERR_DTYPE;
    }
    error = check_dims(array, tensor);
    if (error == CRT_OK) {
        error = check_strides(array);
    }
    if (error == CRT_OK && !crt_is_aligned(array->data, tensor->align)) {
        error = CRT_ERR_ALIGN;
    }
    return error;
}

/* The check for a tensor that may be none. */
static int check_for(const struct crt_graph *g, const struct crt_tensor *tensor,
                     const struct crt_array *array)
{
    if (tensor == NULL) {
        return crt_is_ready(g) ? CRT_ERR_INDEX : CRT_ERR_NULL;
    }
    return crt_array_check(array, tensor);
}

int crt_graph_bind_input_array(struct crt_graph *g, uint32_t index,
                               const struct crt_array *array)
{
    const struct crt_tensor *tensor = crt_graph_input_info(g, index);
    int error = check_for(g, tensor, array);

    if (error != CRT_OK) {
        return error;
    }
    return crt_graph_bind_input(g, index, array->data, tensor->bytes);
}

int crt_graph_bind_output_array(struct crt_graph *g, uint32_t index,
                                const struct crt_array *array)
{
    const struct crt_tensor *tensor = crt_graph_output_info(g, index);
    int error = check_for(g, tensor, array);

    if (error != CRT_OK) {
        return error;
    }
    /* MISRA 11.8: array is const, not what data points to */
    return crt_graph_bind_output(g, index, array->data, tensor->bytes);
}

/* ---- where it lies ------------------------------------------------------- */

#ifdef CRT_NO_OVERLAP

int crt_check_place(const struct crt_graph *g, uint32_t t, const void *data,
                    uint32_t bytes)
{
    (void)g;
    (void)t;
    (void)data;
    (void)bytes;
    return CRT_OK;
}

int crt_turn_join(struct crt_graph *g, struct crt_turn *turn)
{
    g->turn = turn;
    return CRT_OK;
}

#else

/* Whether two pieces of memory have a byte in common. */
static int meet(const void *a, uint32_t a_bytes, const void *b,
                uint32_t b_bytes)
{
    /* MISRA 11.6: places are compared that may be of different objects */
    uintptr_t first = (uintptr_t)a;
    uintptr_t second = (uintptr_t)b; /* MISRA 11.6: as above */

    return a_bytes != 0u &&
           (second - first < a_bytes || first - second < b_bytes);
}

/* Whose addresses those of a region are; 0: the CPU's, also where it does the
 * work of a device. */
static uint32_t device_of(const struct crt_graph *g, uint32_t region)
{
    const struct crt_model *model = g->model;
    const struct crt_device *devices;
    uint32_t device;

    if (model->accelerator == NULL) {
        return 0;
    }
    device = model->region_devices[region];
    devices = (const struct crt_device *)*crt_devices(g);
    return devices != NULL && devices[device].api == NULL ? 0u : device;
}

/* Whether all of it is the home of an input that runs only read. */
static int is_kept_input(const struct crt_graph *g, const void *data,
                         uint32_t bytes)
{
    const uint32_t not_so = CRT_TENSOR_CONSUMED | CRT_TENSOR_LAZY;
    uint32_t i;

    for (i = 0; i < g->model->input_count; i++) {
        const struct crt_tensor *input = &g->model->tensors[i];
        uintptr_t at;

        if ((input->flags & not_so) == 0u && bytes <= input->bytes) {
            /* MISRA 11.6: where data begins in the input, if it is there */
            at = (uintptr_t)data - (uintptr_t)crt_place(g, input);
            if (at <= input->bytes - bytes) {
                return 1;
            }
        }
    }
    return 0;
}

int crt_check_place(const struct crt_graph *g, uint32_t t, const void *data,
                    uint32_t bytes)
{
    const struct crt_tensor *tensor = &g->model->tensors[t];
    uint32_t device = 0;
    uint32_t i;

    if (data == crt_home(g, tensor)) {
        return CRT_OK;
    }
    if (crt_is_remote(g, tensor) != 0) {
        device = device_of(g, tensor->region);
    }
    if (g->turn != NULL && device == 0u) {
        for (i = 0; i < (uint32_t)CRT_TURN_REGIONS; i++) {
            const struct crt_region *shared = &g->turn->memory[i];

            if (meet(shared->ptr, shared->bytes, data, bytes) != 0) {
                return CRT_ERR_OVERLAP;
            }
        }
    }
    for (i = 0; i < g->model->region_count; i++) {
        if (device_of(g, i) == device &&
            meet(g->base[i], g->model->region_bytes[i], data, bytes) != 0) {
            return t < g->model->input_count &&
                           is_kept_input(g, data, bytes) != 0
                       ? CRT_OK
                       : CRT_ERR_OVERLAP;
        }
    }
    return CRT_OK;
}

/* Adds a region of an instance's to those of a turn, or makes it longer. */
static int cover(struct crt_turn *turn, void *ptr, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < (uint32_t)CRT_TURN_REGIONS; i++) {
        struct crt_region *shared = &turn->memory[i];

        if (shared->ptr == NULL) {
            shared->ptr = ptr;
        }
        if (shared->ptr == ptr) {
            if (shared->bytes < bytes) {
                shared->bytes = bytes;
            }
            return CRT_OK;
        }
    }
    return CRT_ERR_REGION;
}

int crt_turn_join(struct crt_graph *g, struct crt_turn *turn)
{
    const struct crt_model *model = g->model;
    uint32_t end = crt_first_parameter(model) + model->parameter_count;
    struct crt_turn *before = g->turn;
    int error = CRT_OK;
    uint32_t i;

    g->turn = turn;
    for (i = 0; turn != NULL && error == CRT_OK && i < model->region_count;
         i++) {
        if (device_of(g, i) == 0u) {
            error = cover(turn, g->base[i], model->region_bytes[i]);
        }
    }
    for (i = 0; i < end; i++) { /* nothing that is bound may lie there */
        if (error == CRT_OK && *crt_slot(g, i) != NULL &&
            crt_is_home(g, i, 0) == 0) {
            error =
                crt_check_place(g, i, *crt_slot(g, i), model->tensors[i].bytes);
        }
    }
    if (error != CRT_OK) {
        g->turn = before;
    }
    return error;
}

#endif
