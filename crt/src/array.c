/* array.c: arrays of the caller's as inputs and outputs, checked.
 * Knows nothing of running. */
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
