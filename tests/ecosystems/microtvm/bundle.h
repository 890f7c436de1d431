/* Four functions around a model, as bundles of TVM have them. */
#ifndef BUNDLE_H
#define BUNDLE_H

#include <tvm/runtime/c_runtime_api.h>

TVM_DLL void *tvm_runtime_create(const char *json_data, const char *params_data,
                                 const uint64_t params_size);
TVM_DLL void tvm_runtime_destroy(void *executor);
TVM_DLL void tvm_runtime_set_input(void *executor, const char *name,
                                   DLTensor *tensor);
TVM_DLL void tvm_runtime_run(void *executor);
TVM_DLL void tvm_runtime_get_output(void *executor, int32_t index,
                                    DLTensor *tensor);

#endif
