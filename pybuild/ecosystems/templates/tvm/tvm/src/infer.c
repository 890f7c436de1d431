/* tvm/src/infer.c: a run of the static instance; tvmgen_default_run is made of
 * it. Calls no function of the program. */
#include "tvm/src/model.h"

int crt_tvm_prepare(const TVMModule *module)
{
    int error;

    if (*module->ready != 0u) {
        return CRT_OK;
    }
    error = module->prepare();
    if (error == CRT_OK) {
        *module->ready = 1u;
    }
    return error;
}

int crt_tvm_give(const TVMModule *module, uint32_t i, const void *data)
{
    struct crt_graph *g = module->graph;
    const struct crt_tensor *tensor = crt_graph_input_info(g, i);
    int error;

    if (tensor == NULL) {
        return CRT_ERR_INDEX;
    }
    if (data == NULL) {
        return CRT_ERR_INPUT_MISSING;
    }
    error = crt_graph_bind_input(g, i, data, tensor->bytes);
    module->copied[i] = NULL;
    if (error == CRT_ERR_ALIGN) {
        error = crt_graph_bind_input(g, i, NULL, tensor->bytes);
        if (error == CRT_OK) {
            module->copied[i] = data;
        }
    }
    return error;
}

int crt_tvm_run(const TVMModule *module)
{
    struct crt_graph *g = module->graph;
    const int count = crt_graph_input_count(g);
    uint32_t i;
    int error = CRT_OK;

    for (i = 0; error == CRT_OK && (int)i < count; i++) {
        if (module->copied[i] != NULL) {
            error = crt_graph_set_input(g, i, module->copied[i],
                                        crt_graph_input_info(g, i)->bytes);
        }
    }
    return error == CRT_OK ? module->run() : error;
}

/* Where a run writes an output: there, or to its own memory, to be copied. */
static int aim(const TVMModule *module, uint32_t i, void *data)
{
    struct crt_graph *g = module->graph;
    const uint32_t bytes = crt_graph_output_info(g, i)->bytes;
    const int error = crt_graph_bind_output(g, i, data, bytes);

    return error == CRT_ERR_ALIGN ? crt_graph_bind_output(g, i, NULL, bytes)
                                  : error;
}

/* Copies an output where it is not. */
static int collect(const TVMModule *module, uint32_t i, void *data)
{
    struct crt_graph *g = module->graph;

    if (data == NULL || crt_graph_output(g, i) == data) {
        return CRT_OK;
    }
    return crt_graph_get_output(g, i, data, crt_graph_output_info(g, i)->bytes);
}

/* Nothing of the caller's memory is left after a run, whatever its end. */
static void unbind(const TVMModule *module, int ins, int outs)
{
    struct crt_graph *g = module->graph;
    uint32_t i;

    for (i = 0; (int)i < ins; i++) {
        module->copied[i] = NULL;
        (void)crt_graph_bind_input(g, i, NULL,
                                   crt_graph_input_info(g, i)->bytes);
    }
    for (i = 0; (int)i < outs; i++) {
        (void)crt_graph_bind_output(g, i, NULL,
                                    crt_graph_output_info(g, i)->bytes);
    }
}

int crt_tvm_infer(const TVMModule *module, int (*load)(void),
                  void *const *inputs, void *const *outputs)
{
    const uint8_t was_ready = *module->ready;
    int error, outs, ins;
    uint32_t i;

    if (*module->used != 0u) {
        return CRT_ERR_BUSY; /* an executor has the instance */
    }
    error = crt_tvm_prepare(module);
    if (error == CRT_OK && was_ready == 0u && load != NULL) {
        error = load();
        *module->ready = (uint8_t)(error == CRT_OK);
    }
    if (error != CRT_OK) {
        return error;
    }
    ins = crt_graph_input_count(module->graph);
    outs = crt_graph_output_count(module->graph);
    for (i = 0; error == CRT_OK && (int)i < ins; i++) {
        error = crt_tvm_give(module, i, inputs[i]);
    }
    for (i = 0; error == CRT_OK && (int)i < outs; i++) {
        error = aim(module, i, outputs[i]);
    }
    if (error == CRT_OK) {
        error = crt_tvm_run(module);
    }
    for (i = 0; error == CRT_OK && (int)i < outs; i++) {
        error = collect(module, i, outputs[i]);
    }
    unbind(module, ins, outs);
    return error;
}

void *crt_tvm_aligned(void *memory, uintptr_t align)
{
    return (void *)(((uintptr_t)memory + align - 1u) & ~(align - 1u));
}
