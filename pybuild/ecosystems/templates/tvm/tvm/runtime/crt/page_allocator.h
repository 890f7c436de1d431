/* tvm/runtime/crt/page_allocator.h: memory of the program in pages. The model
 * takes none of it, so the pool may be as small as the program's own needs. */
#ifndef TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MemoryManagerInterface MemoryManagerInterface;

struct MemoryManagerInterface {
    tvm_crt_error_t (*Allocate)(MemoryManagerInterface *manager,
                                size_t num_bytes, DLDevice dev, void **out_ptr);
    tvm_crt_error_t (*Free)(MemoryManagerInterface *manager, void *ptr,
                            DLDevice dev);
    int vleak_size; /* blocks that are not freed */
};

/* Makes a manager in the pool: 2 bytes a page, at most 65,535 pages.
 *
 * Errors  kTvmErrorPlatformNoMemory: the pool holds no page;
 *         kTvmErrorFunctionCallInvalidArg: NULL, pages of less than 16 bytes */
tvm_crt_error_t PageMemoryManagerCreate(MemoryManagerInterface **manager,
                                        uint8_t *memory_pool,
                                        size_t memory_pool_size_bytes,
                                        size_t page_size_bytes_log2);

#ifdef __cplusplus
}
#endif

#endif
