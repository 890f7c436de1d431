/* tvm/runtime/crt/packed_func.h: a function by its name, and its arguments. The
 * one that there is gives the module: "runtime.SystemLib". */
#ifndef TVM_RUNTIME_CRT_PACKED_FUNC_H_
#define TVM_RUNTIME_CRT_PACKED_FUNC_H_

#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/platform.h>

/* programs have these by way of TVM's header */
#ifdef __has_include
#if __has_include(<assert.h>) && __has_include(<stdio.h>) &&                   \
    __has_include(<stdlib.h>)
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* whatever the program's crt_config.h says */
#define TVM_ARGS_ROOM 10

typedef struct TVMArgs {
    TVMValue values[TVM_ARGS_ROOM];
    int tcodes[TVM_ARGS_ROOM];
    uint32_t values_count;
} TVMArgs;

typedef struct TVMPackedFunc {
    TVMFunctionHandle fexec;
    TVMArgs args;
    TVMArgs ret_value;
    int (*Call)(struct TVMPackedFunc *pf);
    void (*SetArgs)(struct TVMPackedFunc *pf, const TVMArgs *args);
} TVMPackedFunc;

/* At most TVM_ARGS_ROOM values; more: TVMPlatformAbort. */
TVMArgs TVMArgs_Create(TVMValue *values, uint32_t *tcodes,
                       uint32_t values_count);

/* 0; kTvmErrorFunctionNameNotFound, as TVMFuncGetGlobal. */
int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc *pf, const char *name,
                                 const TVMArgs *args);
int TVMPackedFunc_InitModuleFunc(TVMPackedFunc *pf, TVMModuleHandle module,
                                 const char *name, const TVMArgs *args);
int TVMPackedFunc_Call(TVMPackedFunc *pf);
void TVMPackedFunc_SetArgs(TVMPackedFunc *pf, const TVMArgs *args);

/* The module among values; another value: TVMPlatformAbort. */
TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs *args, size_t index);

#ifdef __cplusplus
}
#endif

#endif
