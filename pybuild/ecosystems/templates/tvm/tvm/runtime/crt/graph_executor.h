/* tvm/runtime/crt/graph_executor.h: TVM's graph executor over the model of a
 * build, which has one. Where TVM calls TVMPlatformAbort, these do, after
 * TVMLogf. */
#ifndef TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_

#include <dlpack/dlpack.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/packed_func.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMGraphExecutorNode {
    char *name; /* not to be written to */
} TVMGraphExecutorNode;

/* The name of input i is nodes[input_nodes[i]].name. Weights are not among
 * them. */
typedef struct TVMGraphExecutor {
    TVMGraphExecutorNode *nodes;
    uint32_t nodes_count;
    uint32_t *input_nodes;
    uint32_t input_nodes_count;
    uint32_t outputs_count;
    TVMModuleHandle module_handle;
    DLDevice devices[1];
    uint32_t devices_count;
} TVMGraphExecutor;

/* The executor of the module's model.
 *
 * sym_json  the graph JSON of this build (executor-config/graph/default.graph),
 * or NULL: nothing is read of it but whether it is that Errors
 * kTvmErrorFunctionCallInvalidArg: another graph, NULL;
 *           kTvmErrorExecutorModuleBadContext: not the CPU;
 *           kTvmErrorExecutorModuleAlreadyCreated; -1. TVMGetLastError has a
 * text */
int TVMGraphExecutor_Create(const char *sym_json, TVMModuleHandle module_handle,
                            const DLDevice *devices,
                            TVMGraphExecutor **executor);

/* Gives it back; *executor is NULL then. -1 for NULL. */
int TVMGraphExecutor_Release(TVMGraphExecutor **executor);

int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor *executor);
int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor *executor);

/* -1 for a name that no input has. */
int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor *executor,
                                   const char *name);

/* Runs read the input where it lies: the array must stay. Another type, shape
 * or order, or a name that no input has: TVMPlatformAbort. */
void TVMGraphExecutor_SetInput(TVMGraphExecutor *executor, const char *name,
                               DLTensor *data_in);

/* Takes the parameters of this build (parameters/default.params).
 *
 * Owner   of a model with --params: the caller keeps them, aligned to 16 bytes
 * Errors  kTvmErrorFunctionCallInvalidArg: others; TVMGetLastError has a text
 */
int TVMGraphExecutor_LoadParams(TVMGraphExecutor *executor,
                                const char *param_blob,
                                const uint32_t param_size);

/* Runs once. An input that was never set: TVMPlatformAbort. */
void TVMGraphExecutor_Run(TVMGraphExecutor *executor);

/* Copies an output; 0. Another type, shape or order, or no such output:
 * TVMPlatformAbort. */
int TVMGraphExecutor_GetOutput(TVMGraphExecutor *executor, const int32_t index,
                               DLTensor *out);

#ifdef __cplusplus
}
#endif

#endif
