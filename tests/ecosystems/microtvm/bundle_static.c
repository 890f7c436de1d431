/* The calls of a static bundle: pages, packed function, executor, parameters.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/page_allocator.h>

#include "bundle.h"

#define PAGES     16
#define PAGE_LOG2 8

static uint8_t pool[PAGES * (1 << PAGE_LOG2)];
static MemoryManagerInterface *manager;

#define MUST(call)                                                             \
    do {                                                                       \
        tvm_crt_error_t code = (call);                                         \
        if (code != kTvmErrorNoError) {                                        \
            printf("%d: %s\n", __LINE__, TVMGetLastError());                   \
            exit(code);                                                        \
        }                                                                      \
    } while (0)

TVM_DLL void *tvm_runtime_create(const char *json_data, const char *params_data,
                                 const uint64_t params_size)
{
    TVMByteArray params;
    DLDevice dev;
    TVMPackedFunc pf;
    TVMArgs args = TVMArgs_Create(NULL, NULL, 0);
    TVMModuleHandle library;
    TVMGraphExecutor *executor = NULL;
    void *block = NULL;

    params.data = params_data;
    params.size = params_size;
    dev.device_type = (DLDeviceType)kDLCPU;
    dev.device_id = 0;
    MUST(PageMemoryManagerCreate(&manager, pool, sizeof(pool), PAGE_LOG2));
    MUST(TVMPlatformMemoryAllocate(300, dev, &block));
    MUST(TVMPlatformMemoryFree(block, dev));
    MUST(TVMInitializeRuntime());
    MUST(TVMPackedFunc_InitGlobalFunc(&pf, "runtime.SystemLib", &args));
    MUST(TVMPackedFunc_Call(&pf));
    library = TVMArgs_AsModuleHandle(&pf.ret_value, 0);
    MUST(TVMGraphExecutor_Create(json_data, library, &dev, &executor));
    MUST(TVMGraphExecutor_LoadParams(executor, params.data, params.size));
    return executor;
}

TVM_DLL void tvm_runtime_destroy(void *executor)
{
    TVMGraphExecutor *graph_executor = (TVMGraphExecutor *)executor;

    TVMGraphExecutor_Release(&graph_executor);
}

TVM_DLL void tvm_runtime_set_input(void *executor, const char *name,
                                   DLTensor *tensor)
{
    TVMGraphExecutor_SetInput((TVMGraphExecutor *)executor, name, tensor);
}

TVM_DLL void tvm_runtime_run(void *executor)
{
    TVMGraphExecutor_Run((TVMGraphExecutor *)executor);
}

TVM_DLL void tvm_runtime_get_output(void *executor, int32_t index,
                                    DLTensor *tensor)
{
    TVMGraphExecutor_GetOutput((TVMGraphExecutor *)executor, index, tensor);
}

void TVMLogf(const char *msg, ...)
{
    va_list args;

    va_start(args, msg);
    printf("%s %s\n", msg, va_arg(args, const char *));
    va_end(args);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error_code)
{
    printf("TVMPlatformAbort: %d\n", error_code);
    exit(-1);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev,
                                          void **out_ptr)
{
    return manager->Allocate(manager, num_bytes, dev, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    return manager->Free(manager, ptr, dev);
}

tvm_crt_error_t TVMPlatformTimerStart()
{
    return kTvmErrorFunctionCallNotImplemented;
}

tvm_crt_error_t TVMPlatformTimerStop(double *elapsed_time_seconds)
{
    *elapsed_time_seconds = 0;
    return kTvmErrorFunctionCallNotImplemented;
}
