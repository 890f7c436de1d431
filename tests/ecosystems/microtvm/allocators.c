/* The two allocators by themselves: each line that fails is printed. */
#include <stdint.h>
#include <stdio.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/stack_allocator.h>

#define MUST(x)                                                                \
    do {                                                                       \
        if (!(x))                                                              \
            printf("line %d: %s\n", __LINE__, #x);                             \
    } while (0)

enum { PAGE = 256, POOL = 4096, MOST = 32 };

static uint8_t pool[POOL + 1];
static const DLDevice cpu = {kDLCPU, 0};

static void pages(uint8_t *memory, size_t bytes)
{
    MemoryManagerInterface *m = NULL;
    void *held[MOST];
    void *large = NULL;
    int count = 0;

    MUST(PageMemoryManagerCreate(&m, memory, bytes, 8) == kTvmErrorNoError);
    while (m->Allocate(m, 1, cpu, &held[count]) == kTvmErrorNoError)
        count++;
    MUST(count ==
         (int)(POOL / PAGE) - 1); /* the table takes less than a page */
    MUST(m->vleak_size == count);
    for (int i = 0; i < count; i++) {
        uint8_t *at = held[i];

        MUST((uintptr_t)at % 16 == 0);
        MUST(at >= memory && at + PAGE <= memory + bytes);
        MUST(i == 0 || at == (uint8_t *)held[i - 1] + PAGE);
        for (int k = 0; k < PAGE; k++)
            at[k] = (uint8_t)i;
    }
    MUST(m->Free(m, held[3], cpu) == 0 && m->Free(m, held[4], cpu) == 0);
    MUST(m->Free(m, held[4], cpu) == kTvmErrorFunctionCallInvalidArg);
    MUST(m->Free(m, (uint8_t *)held[5] + 1, cpu) ==
         kTvmErrorFunctionCallInvalidArg);
    MUST(m->Free(m, NULL, cpu) == kTvmErrorFunctionCallInvalidArg);
    /* neighbours that are free are one piece again */
    MUST(m->Allocate(m, 3 * PAGE, cpu, &large) == kTvmErrorPlatformNoMemory);
    MUST(large == NULL);
    MUST(m->Allocate(m, PAGE + 1, cpu, &large) == 0 && large == held[3]);
    MUST(m->Free(m, held[4], cpu) == kTvmErrorFunctionCallInvalidArg);
    MUST(m->Free(m, large, cpu) == 0);
    MUST(m->Allocate(m, SIZE_MAX, cpu, &large) == kTvmErrorPlatformNoMemory);
    for (int i = 0; i < count; i++)
        MUST(i == 3 || i == 4 || m->Free(m, held[i], cpu) == 0);
    MUST(m->vleak_size == 0);
    MUST(m->Allocate(m, (size_t)count * PAGE, cpu, &large) == 0);
    MUST(PageMemoryManagerCreate(&m, memory, PAGE, 8) ==
         kTvmErrorPlatformNoMemory);
    MUST(PageMemoryManagerCreate(&m, memory, 8, 8) ==
         kTvmErrorPlatformNoMemory);
    MUST(PageMemoryManagerCreate(&m, memory, bytes, 3) ==
         kTvmErrorFunctionCallInvalidArg);
    MUST(PageMemoryManagerCreate(NULL, memory, bytes, 8) ==
         kTvmErrorFunctionCallInvalidArg);
}

static void stack(void)
{
    tvm_workspace_t w;
    void *a = NULL;
    void *b = NULL;

    MUST(StackMemoryManager_Init(&w, pool + 1, 100) == 0);
    MUST(w.workspace_size <= 100 && (uintptr_t)w.workspace % 16 == 0);
    MUST(StackMemoryManager_Allocate(&w, 1, &a) == 0);
    MUST(StackMemoryManager_Allocate(&w, 40, &b) == 0);
    MUST((uint8_t *)b == (uint8_t *)a + 16);
    MUST(StackMemoryManager_Allocate(&w, 48, &b) == kTvmErrorPlatformNoMemory);
    MUST(StackMemoryManager_Allocate(&w, -1, &b) == kTvmErrorPlatformNoMemory);
    MUST((uint8_t *)b == (uint8_t *)a + 16);
    MUST(StackMemoryManager_Free(&w, pool) ==
         kTvmErrorPlatformStackAllocBadFree);
    MUST(StackMemoryManager_Free(&w, w.next_alloc + 1) ==
         kTvmErrorPlatformStackAllocBadFree);
    MUST(StackMemoryManager_Free(&w, b) == 0);
    MUST(StackMemoryManager_Free(&w, a) == 0 && w.next_alloc == a);
    MUST(StackMemoryManager_Allocate(&w, 80, &b) == 0 && b == a);
    MUST(StackMemoryManager_Init(&w, pool + 1, 3) == kTvmErrorPlatformNoMemory);
}

int main(void)
{
    pages(pool, POOL);
    pages(pool + 1, POOL);
    stack();
    printf("done\n");
    return 0;
}
