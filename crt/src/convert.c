/* convert.c: inputs that are converted when they are set.
 * Knows no type: what converts is a stage of the model's. */
#include "crt/convert.h"

#include "crt/lockstep.h"
#include "crt/slots.h"

/* The input that a stage converts; input_count: it converts none. */
static uint32_t input_of(const struct crt_model *model, uint32_t stage)
{
    uint32_t left = stage;
    uint32_t i;

    for (i = 0; i < model->input_count; i++) {
        if ((model->tensors[i].flags & CRT_TENSOR_CONVERTED) != 0u) {
            if (left == 0u) {
                return i;
            }
            left--;
        }
    }
    return i;
}

/* The conversion is one step, which only a hook can stop. */
static int convert(struct crt_graph *g, void **pointers,
                   const struct crt_stage *stage)
{
    const struct crt_step *step = &g->model->steps[stage->first];
    int error = crt_run_bands(g, step, pointers);

    if (error != CRT_OK) {
        g->failed_step = (int16_t)stage->first;
    }
    return error;
}

int crt_convert_input(struct crt_graph *g, const struct crt_tensor *input,
                      const void *data)
{
    const struct crt_model *model = g->model;
    ptrdiff_t index = input - model->tensors;
    const uint32_t number = (uint32_t)index;
    void **slot = crt_slot(g, number);
    void *pointers[CRT_CONVERT_POINTERS];
    uint32_t stage = 0;
    int error;

    if (!crt_is_aligned(data, input->align)) {
        return CRT_ERR_ALIGN;
    }
    if (data == crt_place(g, input) ||
        crt_check_place(g, number, data, input->bytes) != CRT_OK) {
        return CRT_ERR_OVERLAP;
    }
    while (input_of(model, stage) != number) {
        stage++;
    }
    *slot = crt_unconst(data);
    error = convert(g, pointers, &model->stages[stage]);
    *slot = crt_place(g, input);
    return error;
}

int crt_convert_advance(struct crt_graph *g, void **pointers,
                        const struct crt_stage *stage)
{
    ptrdiff_t number = stage - g->model->stages;
    const uint32_t input = input_of(g->model, (uint32_t)number);

    if (crt_is_home(g, input, CRT_TENSOR_CONVERTED) != 0) {
        return CRT_OK; /* since it was set */
    }
    return convert(g, pointers, stage);
}

int crt_convert_lockstep(struct crt_graph *g, void **pointers,
                         const struct crt_stage *stage)
{
    ptrdiff_t number = stage - g->model->stages;

    if (input_of(g->model, (uint32_t)number) == g->model->input_count) {
        return crt_lockstep(g, pointers, stage);
    }
    return crt_convert_advance(g, pointers, stage);
}
