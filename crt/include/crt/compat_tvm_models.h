/* crt/compat_tvm_models.h: macros that make what crt/compat_tvm.h drives, of a
 * generated NAME.h: an arena and an instance, static. Include NAME.h first.
 * For models with one arena: without --region and without devices. */
#ifndef CRT_COMPAT_TVM_MODELS_H
#define CRT_COMPAT_TVM_MODELS_H

#include "crt/compat_tvm.h"

CRT_C_BODIES

/* Memory that is aligned to a power of two, in a larger piece. */
static inline void *crt_tvm_aligned(void *memory, uintptr_t align)
{
    /* MISRA 11.6: an address that is rounded up is a number between */
    return (void *)(((uintptr_t)memory + align - 1u) & ~(align - 1u));
}

CRT_C_BODIES_END

/* MISRA 20.7, in this file: a name that is declared takes no brackets */

/* Each of these stands in one C file of a program. NAME and PREFIX are those of
 * NAME.h, as in (digits, DIGITS): makes NAME_tvm, a TVMModule. */
#define CRT_TVM_MODEL(NAME, PREFIX)                                            \
    CRT_TVM_INSTANCE(NAME, PREFIX)                                             \
    CRT_TVM_HANDLE(NAME, NULL, NULL)

/* ... of a model with parameters. */
#define CRT_TVM_MODEL_WITH_PARAMS(NAME, PREFIX)                                \
    CRT_TVM_INSTANCE(NAME, PREFIX)                                             \
    static struct crt_params NAME##_tvm_params;                                \
    static int NAME##_tvm_release(void)                                        \
    {                                                                          \
        int error = crt_graph_release_params(&NAME##_tvm_instance.graph);      \
                                                                               \
        return error == CRT_OK ? crt_params_close(&NAME##_tvm_params) : error; \
    }                                                                          \
    static int NAME##_tvm_load(const void *image, uint32_t bytes)              \
    {                                                                          \
        int error = NAME##_tvm_release();                                      \
                                                                               \
        if (error == CRT_OK)                                                   \
            error = crt_params_verify(&NAME##_tvm_params, image, bytes);       \
        return error == CRT_OK                                                 \
                   ? crt_graph_load_params(&NAME##_tvm_instance.graph,         \
                                           &NAME##_tvm_params)                 \
                   : error;                                                    \
    }                                                                          \
    CRT_TVM_HANDLE(NAME, NAME##_tvm_load, NAME##_tvm_release)

#define CRT_TVM_INSTANCE(NAME, PREFIX)                                         \
    static uint8_t                                                             \
        NAME##_tvm_arena[PREFIX##_ARENA_BYTES + PREFIX##_ARENA_ALIGN];         \
    static struct NAME NAME##_tvm_instance;                                    \
    static int NAME##_tvm_init(void)                                           \
    {                                                                          \
        struct NAME##_memory memory;                                           \
                                                                               \
        memory.arena.ptr =                                                     \
            crt_tvm_aligned(NAME##_tvm_arena, PREFIX##_ARENA_ALIGN);           \
        memory.arena.bytes = PREFIX##_ARENA_BYTES;                             \
        return NAME##_init(&NAME##_tvm_instance, &memory);                     \
    }                                                                          \
    static int NAME##_tvm_run(void)                                            \
    {                                                                          \
        return NAME##_run(&NAME##_tvm_instance);                               \
    }

#define CRT_TVM_HANDLE(NAME, LOAD, RELEASE)                                    \
    static TVMGraphExecutor NAME##_tvm_executor = {&NAME##_tvm_instance.graph, \
                                                   NAME##_tvm_init,            \
                                                   NAME##_tvm_run,             \
                                                   LOAD,                       \
                                                   RELEASE,                    \
                                                   0};                         \
    extern const TVMModule NAME##_tvm;                                         \
    const TVMModule NAME##_tvm = {&NAME##_tvm_executor}

/* The model that TVMSystemLibEntryPoint gives. */
#define CRT_TVM_SYSTEM_LIB(NAME)                                               \
    const TVMModule *TVMSystemLibEntryPoint(void)                              \
    {                                                                          \
        return &NAME##_tvm;                                                    \
    }

/* int32_t TVMGEN_run(inputs, outputs), of the AOT interface, over NAME_predict:
 * an arena, static. Thread  one at a time. Errors  those of NAME_predict */
#define CRT_TVM_AOT(TVMGEN, NAME, PREFIX)                                      \
    int32_t TVMGEN##_run(struct NAME##_inputs *inputs,                         \
                         struct NAME##_outputs *outputs)                       \
    {                                                                          \
        static uint8_t arena[PREFIX##_ARENA_BYTES + PREFIX##_ARENA_ALIGN];     \
                                                                               \
        return NAME##_predict(crt_tvm_aligned(arena, PREFIX##_ARENA_ALIGN),    \
                              inputs, outputs);                                \
    }                                                                          \
    extern int32_t TVMGEN##_run(struct NAME##_inputs *inputs,                  \
                                struct NAME##_outputs *outputs)

#endif
