/* tvm/runtime/crt/stack_allocator.h: memory of the program that is freed in the
 * reverse order. The model takes none of it, unless -DTVM_PLATFORM_WORKSPACE.
 */
#ifndef TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifndef TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES
#define TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES 16
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint8_t *next_alloc;
    uint8_t *workspace;
    size_t workspace_size;
} tvm_workspace_t;

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *tvm_runtime_workspace,
                                        uint8_t *g_aot_memory,
                                        size_t workspace_size);

/* Errors  kTvmErrorPlatformNoMemory */
tvm_crt_error_t
StackMemoryManager_Allocate(tvm_workspace_t *tvm_runtime_workspace,
                            int32_t nbytes, void **current_alloc);

/* Frees a block and all that came after it.
 *
 * Errors  kTvmErrorPlatformStackAllocBadFree: none of its blocks */
tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *tvm_runtime_workspace,
                                        void *ptr);

#ifdef __cplusplus
}
#endif

#endif
