/* A Zephyr application for the AOT executor: workspace on a stack allocator. */
#include <stdarg.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/platform.h>
#include <tvm/runtime/crt/stack_allocator.h>
#include <zephyr/kernel.h>

#include "pictures.h"
#include "tvmgen_default.h"

static uint8_t g_aot_memory[TVMGEN_DEFAULT_WORKSPACE_SIZE];
static tvm_workspace_t app_workspace;
static int8_t output_data[TVMGEN_DEFAULT_SCORES_SIZE];

void TVMLogf(const char *msg, ...)
{
    printk("%s", msg);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error)
{
    TVMLogf("TVMPlatformAbort: %08x\n", (unsigned)error);
    for (;;)
        ;
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev,
                                          void **out_ptr)
{
    (void)dev;
    return StackMemoryManager_Allocate(&app_workspace, num_bytes, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void *ptr, DLDevice dev)
{
    (void)dev;
    return StackMemoryManager_Free(&app_workspace, ptr);
}

/* The program's own, as some have it. */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
                               int dtype_code_hint, int dtype_bits_hint)
{
    DLDevice dev = {(DLDeviceType)device_type, device_id};
    void *ptr = NULL;

    (void)dtype_code_hint;
    (void)dtype_bits_hint;
    CHECK_EQ(TVMPlatformMemoryAllocate(nbytes, dev, &ptr), kTvmErrorNoError,
             "no memory");
    return ptr;
}

int main(void)
{
    StackMemoryManager_Init(&app_workspace, g_aot_memory,
                            TVMGEN_DEFAULT_WORKSPACE_SIZE);
    for (int p = 0; p < PICTURES; p++) {
        struct tvmgen_default_inputs inputs = {.image = pictures[p]};
        struct tvmgen_default_outputs outputs = {.scores = output_data};
        int ret_val = tvmgen_default_run(&inputs, &outputs);

        if (ret_val != 0)
            printk("Error: %d\n", ret_val);
        for (int i = 0; i < TVMGEN_DEFAULT_SCORES_SIZE; i++)
            printk("%d ", output_data[i]);
        printk("\n");
    }
#ifdef TVM_PLATFORM_WORKSPACE
    CHECK(app_workspace.next_alloc > app_workspace.workspace);
#endif
    return 0;
}
