/* tvm/src/model.h: a model of a build, as TVM's names drive it.
 * tvmgen_default.c makes one. */
#ifndef TVM_SRC_MODEL_H
#define TVM_SRC_MODEL_H

#include <tvm/runtime/crt/graph_executor.h>

#include "crt/graph.h"

#define CRT_TVM_PARAMS_BYTES 32u

/* What TVMModule is, static.
 *
 * prepare     makes the instance and its memory
 * load        parameters from an image; NULL: weights are constants
 * release     these parameters
 * json_bytes  of this build's graph JSON, and its FNV-1a in 32 bits
 * params      this build's list of no parameters, where weights are constants
 */
struct TVMModule {
    struct crt_graph *graph;
    int (*prepare)(void);
    int (*run)(void);
    int (*load)(const void *image, uint32_t bytes);
    int (*release)(void);
    TVMGraphExecutor *executor;
    const void *
        *copied; /* an input that is copied before each run; NULL: not */
    uint8_t *ready, *used; /* the instance is made; an executor is in use */
    uint32_t json_bytes, json_hash;
    uint8_t params[CRT_TVM_PARAMS_BYTES];
};

/* Makes the instance, once. Errors  of NAME_init */
int crt_tvm_prepare(const TVMModule *module);

/* Lets the next run read input i at data: in place, or copied, where it is not
 * aligned as the model needs it. Errors  as crt_graph_bind_input */
int crt_tvm_give(const TVMModule *module, uint32_t i, const void *data);

/* Runs, with the inputs that were given. Errors  as crt_graph_run */
int crt_tvm_run(const TVMModule *module);

/* Runs once: from each input, to each output.
 *
 * load    parameters that are linked, the first time; NULL: weights are
 * constants Errors  CRT_ERR_NULL, as crt_graph_run; CRT_ERR_INPUT_MISSING: one
 * is NULL */
int crt_tvm_infer(const TVMModule *module, int (*load)(void),
                  void *const *inputs, void *const *outputs);

/* Memory that is aligned to a power of two, in a larger piece. */
void *crt_tvm_aligned(void *memory, uintptr_t align);

/* Keeps the text of an error, and gives the code. Owner  text: static */
int crt_tvm_error(int code, const char *text);

#endif
