/* tvm/src/page_allocator.c: first fit over a table of pages, 2 bytes each. */
#include <tvm/runtime/crt/page_allocator.h>

/* At the start of the pool, then the table: the length of the run that begins
 * at a page, 0 for a page that is free, INSIDE for others of a run. */
struct pool {
    MemoryManagerInterface
        interface; /* first: a pointer to it is one to this */
    uint8_t *pages;
    uint16_t *runs;
    uint32_t count;
    uint32_t shift;
};

#define INSIDE     0xffffu
#define MOST_PAGES 0xfffeu

static tvm_crt_error_t allocate(MemoryManagerInterface *manager,
                                size_t num_bytes, DLDevice dev, void **out_ptr)
{
    struct pool *pool = (struct pool *)(void *)manager;
    const size_t whole =
        (num_bytes >> pool->shift) +
        ((num_bytes & (((size_t)1 << pool->shift) - 1u)) != 0u);
    const size_t wanted = whole == 0u ? 1u : whole;
    uint32_t first, i, length = 0;

    (void)dev;
    for (i = 0; i < pool->count; i++) {
        length = pool->runs[i] == 0u ? length + 1u : 0u;
        if (length == wanted) {
            first = i + 1u - length;
            pool->runs[first] = (uint16_t)length;
            for (i = first + 1u; i < first + length; i++) {
                pool->runs[i] = INSIDE;
            }
            *out_ptr = pool->pages + ((size_t)first << pool->shift);
            manager->vleak_size++;
            return kTvmErrorNoError;
        }
    }
    return kTvmErrorPlatformNoMemory;
}

static tvm_crt_error_t release(MemoryManagerInterface *manager, void *ptr,
                               DLDevice dev)
{
    struct pool *pool = (struct pool *)(void *)manager;
    const size_t at = (size_t)((uintptr_t)ptr - (uintptr_t)pool->pages);
    const size_t first = at >> pool->shift;
    uint32_t i, length;

    (void)dev;
    if ((uintptr_t)ptr < (uintptr_t)pool->pages || first >= pool->count ||
        at != first << pool->shift || pool->runs[first] == 0u ||
        pool->runs[first] == INSIDE) {
        return kTvmErrorFunctionCallInvalidArg;
    }
    length = pool->runs[first];
    for (i = 0; i < length; i++) {
        pool->runs[first + i] = 0;
    }
    manager->vleak_size--;
    return kTvmErrorNoError;
}

static uintptr_t rounded(uintptr_t value, uintptr_t align)
{
    return (value + align - 1u) & ~(align - 1u);
}

tvm_crt_error_t PageMemoryManagerCreate(MemoryManagerInterface **manager,
                                        uint8_t *memory_pool,
                                        size_t memory_pool_size_bytes,
                                        size_t page_size_bytes_log2)
{
    struct pool *pool;
    uintptr_t start, end, pages;
    size_t count, i;

    if (manager == NULL || memory_pool == NULL || page_size_bytes_log2 < 4u ||
        page_size_bytes_log2 > 24u) {
        return kTvmErrorFunctionCallInvalidArg;
    }
    start = rounded((uintptr_t)memory_pool, sizeof(void *));
    end = (uintptr_t)memory_pool + memory_pool_size_bytes;
    if (end < start + sizeof *pool) {
        return kTvmErrorPlatformNoMemory;
    }
    count = (size_t)(end - start - sizeof *pool) >> page_size_bytes_log2;
    count = count > MOST_PAGES ? MOST_PAGES : count;
    for (;;
         count--) { /* the table and 16 bytes of rounding take of the pages */
        pages = rounded(start + sizeof *pool + count * sizeof(uint16_t), 16u);
        if (count == 0u) {
            return kTvmErrorPlatformNoMemory;
        }
        if (pages <= end &&
            (size_t)(end - pages) >> page_size_bytes_log2 >= count) {
            break;
        }
    }
    pool = (struct pool *)start;
    pool->interface.Allocate = allocate;
    pool->interface.Free = release;
    pool->interface.vleak_size = 0;
    pool->pages = (uint8_t *)pages;
    pool->runs = (uint16_t *)(start + sizeof *pool);
    pool->count = (uint32_t)count;
    pool->shift = (uint32_t)page_size_bytes_log2;
    for (i = 0; i < count; i++) {
        pool->runs[i] = 0;
    }
    *manager = &pool->interface;
    return kTvmErrorNoError;
}
