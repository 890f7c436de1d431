/* crt/compat_tvm.h: microTVM's C names over a generated model, so that firmware
 * written for them links. Optional; docs/from-tvm.md shows how.
 * Knows no file format; models are made by crt/compat_tvm_models.h. */
#ifndef CRT_COMPAT_TVM_H
#define CRT_COMPAT_TVM_H

#include "crt/dlpack.h"
#include "crt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the macros at the end make of a model -------------------------- */

/* An executor: one instance of a model, and what to do with it. */
typedef struct TVMGraphExecutor {
    struct crt_graph *graph;
    int (*init)(void);
    int (*run)(void);
    int (*load)(const void *image, uint32_t bytes); /* NULL: no parameters */
    int (*release)(void);                           /* NULL: no parameters */
    int in_use;
} TVMGraphExecutor;

/* A "module" is a model that CRT_TVM_MODEL has made. */
typedef struct TVMModule {
    TVMGraphExecutor *executor;
} TVMModule;
typedef void *TVMModuleHandle;

/* Errors are those of crt/error.h, 0 is none, as with TVM. */
typedef int tvm_crt_error_t;
enum { kTvmErrorNoError = 0 };

/* The model of CRT_TVM_SYSTEM_LIB. */
const TVMModule *TVMSystemLibEntryPoint(void);

CRT_C_BODIES

/* There is nothing to initialise. */
static inline tvm_crt_error_t TVMInitializeRuntime(void)
{
    return kTvmErrorNoError;
}

static inline int TVMModCreateFromCModule(const TVMModule *module,
                                          TVMModuleHandle *handle)
{
    if (module == NULL || handle == NULL) {
        return CRT_ERR_NULL;
    }
    *handle = (void *)(uintptr_t)module;
    return CRT_OK;
}

/* ---- the graph executor -------------------------------------------------- */

/* For every function below: what TVM's returns on success, else a negative
 * a code of error.h where TVM's aborts or says nothing. */

/* Takes the module's only instance.
 *
 * sym_json  not read, so leave it out of flash (NULL): the tables say it all
 * devices   one: the CPU
 * Errors    CRT_ERR_NULL, CRT_ERR_DEVICE; CRT_ERR_IN_USE: release it first */
static inline int TVMGraphExecutor_Create(const char *sym_json,
                                          TVMModuleHandle module,
                                          const DLDevice *devices,
                                          TVMGraphExecutor **executor)
{
    TVMGraphExecutor *made;
    int error;

    (void)sym_json;
    if (module == NULL || devices == NULL || executor == NULL) {
        return CRT_ERR_NULL;
    }
    if (devices->device_type != kDLCPU) {
        return CRT_ERR_DEVICE;
    }
    made = ((const TVMModule *)module)->executor;
    if (made->in_use != 0) {
        return CRT_ERR_IN_USE;
    }
    error = made->init();
    if (error != CRT_OK) {
        return error;
    }
    made->in_use = 1;
    *executor = made;
    return CRT_OK;
}

/* Gives the instance back; *executor is then NULL. */
static inline int TVMGraphExecutor_Release(TVMGraphExecutor **executor)
{
    int error = CRT_OK;

    if (executor == NULL || *executor == NULL) {
        return CRT_ERR_NULL;
    }
    if ((*executor)->release != NULL) {
        error = (*executor)->release();
    }
    (*executor)->in_use = 0;
    *executor = NULL;
    return error;
}

static inline struct crt_graph *crt_tvm_graph(const TVMGraphExecutor *executor)
{
    return executor != NULL && executor->in_use != 0 ? executor->graph : NULL;
}

static inline int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor *executor)
{
    return crt_graph_input_count(crt_tvm_graph(executor));
}

static inline int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor *executor)
{
    return crt_graph_output_count(crt_tvm_graph(executor));
}

static inline int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor *executor,
                                                 const char *name)
{
    return crt_graph_find_input(crt_tvm_graph(executor), name);
}

/* Lets runs read an input where it lies, as TVM's does: the array must stay.
 *
 * Errors  as crt_dlpack_check; CRT_ERR_NAME; CRT_ERR_ALIGN: see NAME.h */
static inline int TVMGraphExecutor_SetInput(TVMGraphExecutor *executor,
                                            const char *name, DLTensor *data_in)
{
    struct crt_graph *g = crt_tvm_graph(executor);
    int index = crt_graph_find_input(g, name);
    const struct crt_tensor *tensor;
    int error;

    if (index < 0) {
        return index;
    }
    tensor = crt_graph_input_info(g, (uint32_t)index);
    error = crt_dlpack_check(data_in, tensor);
    if (error != CRT_OK) {
        return error;
    }
    return crt_graph_bind_input(g, (uint32_t)index,
                                (uint8_t *)data_in->data + data_in->byte_offset,
                                tensor->bytes);
}

/* Runs once. Errors  as crt_graph_run */
static inline int TVMGraphExecutor_Run(TVMGraphExecutor *executor)
{
    return crt_tvm_graph(executor) == NULL ? CRT_ERR_NULL : executor->run();
}

/* Copies an output out.
 *
 * Errors  as crt_dlpack_check; CRT_ERR_INDEX, CRT_ERR_NO_OUTPUT */
static inline int TVMGraphExecutor_GetOutput(TVMGraphExecutor *executor,
                                             const int32_t index, DLTensor *out)
{
    struct crt_graph *g = crt_tvm_graph(executor);
    const struct crt_tensor *tensor = crt_graph_output_info(g, (uint32_t)index);
    int error;

    if (tensor == NULL) {
        return g == NULL ? CRT_ERR_NULL : CRT_ERR_INDEX;
    }
    error = crt_dlpack_check(out, tensor);
    if (error != CRT_OK) {
        return error;
    }
    return crt_graph_get_output(g, (uint32_t)index,
                                (uint8_t *)out->data + out->byte_offset,
                                tensor->bytes);
}

/* Binds the parameters of an image of ours (docs/formats.md; TVM's blob gives
 * CRT_ERR_MAGIC: `crt params pack` writes one). It must stay, aligned.
 *
 * Errors  as crt_params_verify and crt_graph_load_params; CRT_ERR_NAME: the
 *         model has no parameters, its weights are constants: do not call */
static inline int TVMGraphExecutor_LoadParams(TVMGraphExecutor *executor,
                                              const char *param_blob,
                                              const uint32_t param_size)
{
    if (crt_tvm_graph(executor) == NULL) {
        return CRT_ERR_NULL;
    }
    if (executor->load == NULL) {
        return CRT_ERR_NAME;
    }
    return executor->load(param_blob, param_size);
}

CRT_C_BODIES_END

#ifdef __cplusplus
}
#endif

#endif
