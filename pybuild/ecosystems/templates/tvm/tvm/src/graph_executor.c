/* tvm/src/graph_executor.c: TVMGraphExecutor_... over the static instance. */
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/logging.h>

#include "tvm/src/model.h"

/* Of what TVM checks and dies for. */
static void must(int error, const char *call)
{
    if (error != CRT_OK) {
        (void)crt_tvm_error(error, crt_strerror(error));
        TVMLogf("%s: %s (%d)\n", call, crt_strerror(error), error);
        TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
    }
}

static const TVMModule *module_of(const TVMGraphExecutor *executor)
{
    const TVMModule *module =
        executor == NULL ? NULL : (const TVMModule *)executor->module_handle;

    return module != NULL && *module->used != 0u ? module : NULL;
}

/* FNV-1a of as many characters as this build's graph JSON has. */
static int is_own_graph(const TVMModule *module, const char *json)
{
    uint32_t hash = 2166136261u;
    uint32_t i;

    for (i = 0; i < module->json_bytes; i++) {
        if (json[i] == '\0') {
            return 0;
        }
        hash = (hash ^ (uint8_t)json[i]) * 16777619u;
    }
    return hash == module->json_hash;
}

static int is_same(const uint8_t *a, const char *b, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        if (a[i] != (uint8_t)b[i]) {
            return 0;
        }
    }
    return 1;
}

/* Forgets what is given from outside: inputs to be copied, parameters.
 *
 * Errors  of giving parameters back */
static int forget(const TVMModule *module)
{
    const int had = *module->ready != 0u && module->release != NULL;
    uint32_t i;

    for (i = 0; i < module->executor->input_nodes_count; i++) {
        module->copied[i] = NULL;
    }
    *module->ready = 0u;
    return had ? module->release() : CRT_OK;
}

int TVMGraphExecutor_Create(const char *sym_json, TVMModuleHandle module_handle,
                            const DLDevice *devices,
                            TVMGraphExecutor **executor)
{
    const TVMModule *module = (const TVMModule *)module_handle;
    int error;

    if (module == NULL || devices == NULL || executor == NULL) {
        return crt_tvm_error(kTvmErrorFunctionCallInvalidArg,
                             "TVMGraphExecutor_Create: NULL");
    }
    if (devices->device_type != kDLCPU) {
        return crt_tvm_error(
            kTvmErrorExecutorModuleBadContext,
            "TVMGraphExecutor_Create: the device must be kDLCPU");
    }
    if (sym_json != NULL && !is_own_graph(module, sym_json)) {
        return crt_tvm_error(
            kTvmErrorFunctionCallInvalidArg,
            "TVMGraphExecutor_Create: not the graph JSON of this build: give "
            "executor-config/graph/default.graph of crt build, or NULL; "
            "another "
            "graph needs a build of its own");
    }
    if (*module->used != 0u) {
        return crt_tvm_error(
            kTvmErrorExecutorModuleAlreadyCreated,
            "TVMGraphExecutor_Create: this model's executor is in "
            "use: TVMGraphExecutor_Release it first");
    }
    (void)forget(module); /* nothing is left of a use before */
    error = crt_tvm_prepare(module);
    if (error != CRT_OK) {
        (void)crt_tvm_error(error, crt_strerror(error));
        return -1;
    }
    *module->used = 1u;
    *executor = module->executor;
    return 0;
}

int TVMGraphExecutor_Release(TVMGraphExecutor **executor)
{
    const TVMModule *module = module_of(executor == NULL ? NULL : *executor);
    int error;

    if (module == NULL) {
        return crt_tvm_error(-1, "TVMGraphExecutor_Release: no executor");
    }
    error = forget(module);
    *module->used = 0u;
    *executor = NULL;
    return error == CRT_OK ? 0 : crt_tvm_error(error, crt_strerror(error));
}

int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor *executor)
{
    return executor == NULL ? -1 : (int)executor->input_nodes_count;
}

int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor *executor)
{
    return executor == NULL ? -1 : (int)executor->outputs_count;
}

int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor *executor, const char *name)
{
    uint32_t i, k;

    for (i = 0;
         executor != NULL && name != NULL && i < executor->input_nodes_count;
         i++) {
        const char *known = executor->nodes[executor->input_nodes[i]].name;

        for (k = 0; known[k] == name[k] && name[k] != '\0'; k++) {
        }
        if (known[k] == name[k]) {
            return (int)i;
        }
    }
    return crt_tvm_error(-1, "TVMGraphExecutor_GetInputIndex: no input of this "
                             "name: executor->nodes[].name has them");
}

/* ---- tensors ---------------------------------------------------------------
 */

/* Whether an array is what a tensor of the model is.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_DTYPE, CRT_ERR_SHAPE, CRT_ERR_STRIDES */
static int check(const DLTensor *array, const struct crt_tensor *tensor)
{
    /* code and bits by enum crt_dtype */
    static const uint8_t types[][2] = {
        {255, 0},       {kDLUInt, 1},   {kDLInt, 8},   {kDLUInt, 8},
        {kDLInt, 16},   {kDLInt, 32},   {kDLInt, 64},  {kDLFloat, 32},
        {kDLUInt, 16},  {kDLUInt, 32},  {kDLUInt, 64}, {kDLFloat, 64},
        {kDLFloat, 16}, {kDLBfloat, 16}};
    int64_t step = 1;
    int32_t i;

    if (array == NULL || array->data == NULL) {
        return CRT_ERR_NULL;
    }
    if (tensor->dtype >= sizeof types / sizeof types[0] ||
        array->dtype.code != types[tensor->dtype][0] ||
        array->dtype.bits != types[tensor->dtype][1] ||
        array->dtype.lanes > 1u) {
        return CRT_ERR_DTYPE;
    }
    if (array->ndim != (int32_t)tensor->rank) {
        return CRT_ERR_SHAPE;
    }
    if (array->ndim > 0 && array->shape == NULL) {
        return CRT_ERR_NULL;
    }
    for (i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] != tensor->dims[i]) {
            return CRT_ERR_SHAPE;
        }
        if (array->strides != NULL && tensor->dims[i] != 1 &&
            array->strides[i] != step) {
            return CRT_ERR_STRIDES;
        }
        step *= tensor->dims[i];
    }
    return CRT_OK;
}

static uint8_t *bytes_of(const DLTensor *array)
{
    return (uint8_t *)array->data + array->byte_offset;
}

void TVMGraphExecutor_SetInput(TVMGraphExecutor *executor, const char *name,
                               DLTensor *data_in)
{
    const TVMModule *module = module_of(executor);
    const int index = TVMGraphExecutor_GetInputIndex(executor, name);
    int error = module == NULL ? CRT_ERR_NULL : CRT_OK;

    if (error == CRT_OK && index < 0) {
        error = CRT_ERR_NAME;
    }
    if (error == CRT_OK) {
        error = check(data_in,
                      crt_graph_input_info(module->graph, (uint32_t)index));
    }
    if (error == CRT_OK) {
        error = crt_tvm_give(module, (uint32_t)index, bytes_of(data_in));
    }
    must(error, "TVMGraphExecutor_SetInput");
}

int TVMGraphExecutor_GetOutput(TVMGraphExecutor *executor, const int32_t index,
                               DLTensor *out)
{
    const TVMModule *module = module_of(executor);
    const struct crt_tensor *tensor =
        module == NULL ? NULL
                       : crt_graph_output_info(module->graph, (uint32_t)index);
    int error = module == NULL ? CRT_ERR_NULL : CRT_OK;

    if (error == CRT_OK && tensor == NULL) {
        error = CRT_ERR_INDEX;
    }
    if (error == CRT_OK) {
        error = check(out, tensor);
    }
    if (error == CRT_OK) {
        error = crt_graph_get_output(module->graph, (uint32_t)index,
                                     bytes_of(out), tensor->bytes);
    }
    must(error, "TVMGraphExecutor_GetOutput");
    return 0;
}

void TVMGraphExecutor_Run(TVMGraphExecutor *executor)
{
    const TVMModule *module = module_of(executor);

    must(module == NULL ? CRT_ERR_NULL : crt_tvm_run(module),
         "TVMGraphExecutor_Run");
}

int TVMGraphExecutor_LoadParams(TVMGraphExecutor *executor,
                                const char *param_blob,
                                const uint32_t param_size)
{
    const TVMModule *module = module_of(executor);
    int error;

    if (module == NULL || param_blob == NULL) {
        return crt_tvm_error(kTvmErrorFunctionCallInvalidArg,
                             "TVMGraphExecutor_LoadParams: NULL");
    }
    if (module->load != NULL) {
        error = module->load(param_blob, param_size);
        if (error == CRT_OK) {
            return 0;
        }
        (void)crt_tvm_error(error, crt_strerror(error));
        if (error == CRT_ERR_MAGIC) {
            (void)crt_tvm_error(
                error, "TVMGraphExecutor_LoadParams: no parameters of this "
                       "build: give parameters/default.params of crt build, or "
                       "an image of crt params pack");
        }
        return kTvmErrorFunctionCallInvalidArg;
    }
    if (param_size != CRT_TVM_PARAMS_BYTES ||
        !is_same(module->params, param_blob, CRT_TVM_PARAMS_BYTES)) {
        return crt_tvm_error(
            kTvmErrorFunctionCallInvalidArg,
            "TVMGraphExecutor_LoadParams: not the parameters of this build, "
            "whose weights are constants: give parameters/default.params of "
            "crt build, or build with --params replaceable");
    }
    return 0;
}
