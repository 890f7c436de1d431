/* Floats at an odd address: runs copy them, as TVM's cores load them anyhow. An
 * input is read anew by each run, though it was set once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/logging.h>

#include "tvmgen_default.h"

enum { IN = TVMGEN_DEFAULT_IMAGE_SIZE, OUT = TVMGEN_DEFAULT_SCORES_SIZE };

static float image[IN / sizeof(float)];
static float scores[OUT / sizeof(float)];
static uint8_t odd_image[IN + 1];
static uint8_t odd_scores[OUT + 1];

void TVMLogf(const char *msg, ...)
{
    (void)msg;
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error_code)
{
    printf("TVMPlatformAbort: %d\n", error_code);
    exit(1);
}

static void fill(int seed)
{
    for (int i = 0; i < (int)(IN / sizeof(float)); i++)
        image[i] = (float)((i * 7 + seed) % 23) / 8.0f - 1.0f;
    memcpy(odd_image + 1, image, IN);
}

static int run(void *from, void *to)
{
    struct tvmgen_default_inputs inputs = {.image = from};
    struct tvmgen_default_outputs outputs = {.scores = to};

    return tvmgen_default_run(&inputs, &outputs);
}

static void compare(const char *what)
{
    printf("%s %d\n", what, memcmp(scores, odd_scores + 1, OUT));
}

int main(void)
{
    int64_t in_shape[4] = {1, 8, 8, 3};
    int64_t out_shape[2] = {1, 5};
    DLTensor in = {odd_image, {kDLCPU, 0}, 4, {kDLFloat, 32, 1},
                   in_shape,  NULL,        1};
    DLTensor out = {odd_scores, {kDLCPU, 0}, 2, {kDLFloat, 32, 1},
                    out_shape,  NULL,        1};
    TVMModuleHandle module = NULL;
    TVMGraphExecutor *executor = NULL;

    for (int seed = 0; seed < 2; seed++) {
        fill(seed);
        if (run(image, scores) != 0 || run(odd_image + 1, odd_scores + 1) != 0)
            return 1;
        compare("aot");
    }
    CHECK(TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &module) == 0);
    CHECK(TVMGraphExecutor_Create(NULL, module, &in.device, &executor) == 0);
    TVMGraphExecutor_SetInput(executor, "image", &in);
    TVMGraphExecutor_Run(executor);
    TVMGraphExecutor_GetOutput(executor, 0, &out);
    compare("graph");
    fill(0); /* not set again */
    TVMGraphExecutor_Run(executor);
    TVMGraphExecutor_GetOutput(executor, 0, &out);
    printf("other %d\n", memcmp(scores, odd_scores + 1, OUT) != 0);
    TVMGraphExecutor_Release(&executor);
    CHECK(run(image, scores) == 0);
    compare("after");
    return 0;
}
