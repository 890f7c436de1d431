/* tvm/runtime/c_backend_api.h: what code that TVM generated called. Kernels of
 * pybuild call none of it; a program that defines these two finds them
 * declared. */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*TVMBackendPackedCFunc)(TVMValue *args, int *type_codes,
                                     int num_args, TVMValue *out_ret_value,
                                     int *out_ret_tcode, void *resource_handle);

TVM_DLL void *TVMBackendAllocWorkspace(int device_type, int device_id,
                                       uint64_t nbytes, int dtype_code_hint,
                                       int dtype_bits_hint);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

#ifdef __cplusplus
}
#endif

#endif
