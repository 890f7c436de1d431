/* tvm/src/stack_allocator.c: the next block begins where the last one ends. */
#include <tvm/runtime/crt/stack_allocator.h>

static size_t rounded(size_t bytes)
{
    const size_t align = TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES;

    return (bytes + align - 1u) / align * align;
}

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *tvm_runtime_workspace,
                                        uint8_t *g_aot_memory,
                                        size_t workspace_size)
{
    const size_t off =
        (size_t)((uintptr_t)g_aot_memory % TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES);
    const size_t skipped =
        off == 0u ? 0u : TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES - off;

    if (skipped > workspace_size) {
        return kTvmErrorPlatformNoMemory;
    }
    tvm_runtime_workspace->workspace = g_aot_memory + skipped;
    tvm_runtime_workspace->next_alloc = g_aot_memory + skipped;
    tvm_runtime_workspace->workspace_size = workspace_size - skipped;
    return kTvmErrorNoError;
}

tvm_crt_error_t
StackMemoryManager_Allocate(tvm_workspace_t *tvm_runtime_workspace,
                            int32_t nbytes, void **current_alloc)
{
    tvm_workspace_t *w = tvm_runtime_workspace;
    const size_t used = (size_t)(w->next_alloc - w->workspace);
    const size_t bytes = nbytes > 0 ? rounded((size_t)nbytes) : 0u;

    if (nbytes < 0 || bytes > w->workspace_size - used) {
        return kTvmErrorPlatformNoMemory;
    }
    *current_alloc = w->next_alloc;
    w->next_alloc += bytes;
    return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *tvm_runtime_workspace,
                                        void *ptr)
{
    tvm_workspace_t *w = tvm_runtime_workspace;

    if ((uintptr_t)ptr < (uintptr_t)w->workspace ||
        (uintptr_t)ptr > (uintptr_t)w->next_alloc) {
        return kTvmErrorPlatformStackAllocBadFree;
    }
    w->next_alloc = (uint8_t *)ptr;
    return kTvmErrorNoError;
}
