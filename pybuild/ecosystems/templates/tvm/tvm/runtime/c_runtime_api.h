/* tvm/runtime/c_runtime_api.h: TVM's C API, as far as firmware of microTVM
 * calls it. Over a model that crt build --api tvm made: docs/from-tvm.md. */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TVM_DLL
#if defined(__GNUC__) && !defined(_WIN32)
#define TVM_DLL __attribute__((visibility("default")))
#else
#define TVM_DLL
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t tvm_index_t;
typedef void *TVMModuleHandle;
typedef void *TVMFunctionHandle;
typedef void *TVMRetValueHandle;
typedef DLTensor *TVMArrayHandle;

typedef enum {
    kTVMArgInt = kDLInt,
    kTVMArgFloat = kDLFloat,
    kTVMOpaqueHandle = 3,
    kTVMNullptr = 4,
    kTVMDataType = 5,
    kDLDevice = 6,
    kTVMDLTensorHandle = 7,
    kTVMObjectHandle = 8,
    kTVMModuleHandle = 9,
    kTVMPackedFuncHandle = 10,
    kTVMStr = 11,
    kTVMBytes = 12,
    kTVMNDArrayHandle = 13,
    kTVMObjectRValueRefArg = 14
} TVMArgTypeCode;

typedef union {
    int64_t v_int64;
    double v_float64;
    void *v_handle;
    const char *v_str;
    DLDataType v_type;
    DLDevice v_device;
} TVMValue;

typedef struct {
    const char *data;
    size_t size;
} TVMByteArray;

/* The text of the last error, and the program's own. Owner  static: a text
 * that is set is copied, its first 127 characters. */
TVM_DLL const char *TVMGetLastError(void);
TVM_DLL void TVMAPISetLastError(const char *msg);

/* A module is the model of this build, static: nothing is freed. */
TVM_DLL int TVMModFree(TVMModuleHandle mod);

/* The model has no functions that are found by name.
 *
 * Errors  kTvmErrorFunctionNameNotFound; TVMGetLastError says what instead */
TVM_DLL int TVMModGetFunction(TVMModuleHandle mod, const char *func_name,
                              int query_imports, TVMFunctionHandle *out);

/* There is one: "runtime.SystemLib", which gives the module.
 *
 * Errors  kTvmErrorFunctionNameNotFound */
TVM_DLL int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out);
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, TVMValue *arg_values,
                        int *type_codes, int num_args, TVMValue *ret_val,
                        int *ret_type_code);
TVM_DLL int TVMFuncFree(TVMFunctionHandle func);

#ifdef __cplusplus
}
#endif

#endif
