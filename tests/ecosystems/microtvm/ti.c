/* A runtime as TI's examples have it: two tiers of memory, errors by longjmp,
 * an int from each function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/page_allocator.h>

#include "graph.json.c"
#include "params.bin.c"
#include "pictures.h"

#define PAGE_LOG2 7
#define POOL      (64 * (1 << PAGE_LOG2))
#define LARGEST   (1 << 10)

static uint8_t pool[POOL];
static MemoryManagerInterface *manager = NULL;
static jmp_buf failed;

#define MUST(call)                                                             \
    do {                                                                       \
        tvm_crt_error_t code = (call);                                         \
        if (code != kTvmErrorNoError) {                                        \
            printf("%s\n", TVMGetLastError());                                 \
            longjmp(failed, -1);                                               \
        }                                                                      \
    } while (0)

void TVMLogf(const char *msg, ...)
{
    va_list args;

    va_start(args, msg);
    printf("%s\n", va_arg(args, const char *));
    va_end(args);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error_code)
{
    printf("TVMPlatformAbort: %d\n", error_code);
    longjmp(failed, -1);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev,
                                          void **out_ptr)
{
    *out_ptr = NULL;
    if (num_bytes <= LARGEST && manager != NULL)
        manager->Allocate(manager, num_bytes, dev, out_ptr);
    if (*out_ptr != NULL) {
        memset(*out_ptr, 0, num_bytes);
        return kTvmErrorNoError;
    }
    TVMPlatformAbort(kTvmErrorPlatformNoMemory);
    return kTvmErrorPlatformNoMemory;
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    return manager->Free(manager, ptr, dev);
}

static void *create(const char *json, const char *params, const uint64_t size)
{
    DLDevice dev = {kDLCPU, 0};
    TVMGraphExecutor *executor = NULL;
    void *scratch = NULL;

    if (!setjmp(failed)) {
        TVMPackedFunc pf;
        TVMArgs args = TVMArgs_Create(NULL, NULL, 0);
        TVMModuleHandle library;

        MUST(PageMemoryManagerCreate(&manager, pool, POOL, PAGE_LOG2));
        MUST(TVMInitializeRuntime());
        pf.ret_value.values_count = 1;
        MUST(TVMPackedFunc_InitGlobalFunc(&pf, "runtime.SystemLib", &args));
        MUST(TVMPackedFunc_Call(&pf));
        library = TVMArgs_AsModuleHandle(&pf.ret_value, 0);
        MUST(TVMGraphExecutor_Create(json, library, &dev, &executor));
        MUST(TVMGraphExecutor_LoadParams(executor, params, size));
        MUST(TVMPlatformMemoryAllocate(512, dev, &scratch));
        return executor;
    }
    return NULL;
}

static int set_input(void *executor, const char *name, DLTensor *tensor)
{
    if (!setjmp(failed)) {
        TVMGraphExecutor_SetInput((TVMGraphExecutor *)executor, name, tensor);
        return 0;
    }
    printf("set_input: failed\n");
    return -1;
}

static int infer(void *executor, DLTensor *tensor)
{
    if (!setjmp(failed)) {
        TVMGraphExecutor_Run((TVMGraphExecutor *)executor);
        TVMGraphExecutor_GetOutput((TVMGraphExecutor *)executor, 0, tensor);
        return 0;
    }
    return -1;
}

int main(void)
{
    int64_t in_shape[4] = {1, 8, 8, 3};
    int64_t out_shape[2] = {1, 5};
    int8_t scores[5];
    DLTensor in = {NULL, {kDLCPU, 0}, 4, {kDLInt, 8, 1}, in_shape, NULL, 0};
    DLTensor out = {scores, {kDLCPU, 0}, 2, {kDLInt, 8, 1}, out_shape, NULL, 0};
    void *handle =
        create((char *)graph_json, (char *)params_bin, params_bin_len);

    if (handle == NULL || manager->vleak_size != 1)
        return 1;
    for (int p = 0; p < PICTURES; p++) {
        in.data = pictures[p];
        if (set_input(handle, "image", &in) != 0 || infer(handle, &out) != 0)
            return 1;
        for (int i = 0; i < 5; i++)
            printf("%d ", scores[i]);
        printf("\n");
    }
    return set_input(handle, "sound", &in) != -1;
}
