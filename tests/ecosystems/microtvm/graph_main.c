/* The graph executor without a bundle: system library, one executor; then, with
 * an argument, what ends in TVMPlatformAbort; else what returns an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/module.h>

#include "graph.json.c"
#include "params.bin.c"
#include "pictures.h"
#include "tvmgen_default.h"

#ifndef MISTAKE
#define MISTAKE 0
#endif

static const DLDevice device = {kDLCPU, 1};
static int8_t scores[5];
static int64_t in_shape[4] = {1, 8, 8, 3};
static int64_t out_shape[2] = {1, 5};
static TVMGraphExecutor *executor;

void TVMLogf(const char *msg, ...)
{
    va_list args;

    va_start(args, msg);
    if (msg[0] == '%' && msg[2] == ':') {
        const char *call = va_arg(args, const char *);

        printf("%s: %s\n", call, va_arg(args, const char *));
    }
    va_end(args);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error_code)
{
    printf("TVMPlatformAbort: %x\n", (unsigned)error_code);
    exit(0);
}

static DLTensor tensor(void *data, int ndim, int64_t *shape)
{
    DLTensor made = {data, {kDLCPU, 0}, ndim, {kDLInt, 8, 0}, shape, NULL, 0};

    return made;
}

/* What TVM answers by TVMPlatformAbort, or not at all. */
static void mistake(int which)
{
    DLTensor in = tensor(pictures[0], 4, in_shape);
    DLTensor out = tensor(scores, 2, out_shape);
    int64_t planes[4] = {1, 3, 8, 8};
    int64_t strides[4] = {192, 24, 4, 1};

    if (which == 1) /* what tvmgen_default_run was given is not there */
        TVMGraphExecutor_Run(executor);
    if (which == 2)
        TVMGraphExecutor_SetInput(executor, "audio", &in);
    if (which == 3)
        in.shape = planes;
    if (which == 4)
        in.dtype.bits = 16;
    if (which == 5)
        in.strides = strides;
    if (which == 6)
        in.data = NULL;
    TVMGraphExecutor_SetInput(executor, "image", &in);
    if (which == 7)
        TVMGraphExecutor_GetOutput(executor, 1, &out);
    if (which == 8)
        TVMGraphExecutor_GetOutput(executor, 0, &out);
    out.shape = in_shape;
    TVMGraphExecutor_Run(executor);
    TVMGraphExecutor_GetOutput(executor, 0, &out);
}

static void refused(TVMModuleHandle module)
{
    static char other[sizeof graph_json];
    static char blob[sizeof params_bin + 1];
    TVMGraphExecutor *second = NULL;
    TVMFunctionHandle function;
    DLDevice gpu = {kDLCUDA, 0};

    memcpy(other, graph_json, sizeof other);
    other[100] ^= 1;
    memcpy(blob, params_bin, sizeof params_bin);
    printf("%x\n",
           (unsigned)TVMGraphExecutor_Create(other, module, &device, &second));
    printf("%s\n", TVMGetLastError());
    printf("%x\n",
           (unsigned)TVMGraphExecutor_Create("{}", module, &device, &second));
    printf("%x\n",
           (unsigned)TVMGraphExecutor_Create(NULL, module, &device, &second));
    printf("%x\n",
           (unsigned)TVMGraphExecutor_Create(NULL, module, &gpu, &second));
    blob[9] ^= 1;
    printf("%x\n", (unsigned)TVMGraphExecutor_LoadParams(executor, blob,
                                                         params_bin_len));
    printf("%s\n", TVMGetLastError());
    printf("%x\n", (unsigned)TVMGraphExecutor_LoadParams(
                       executor, (const char *)params_bin, params_bin_len - 1));
    printf("%d\n", TVMGraphExecutor_GetInputIndex(executor, "imag"));
    printf("%d\n", TVMGraphExecutor_GetInputIndex(executor, "images"));
    printf("%x\n",
           (unsigned)TVMFuncGetGlobal("tvm.graph_executor.create", &function));
    printf("%x\n", (unsigned)TVMModGetFunction(module, "conv", 0, &function));
    printf("%s\n", TVMGetLastError());
    TVMAPISetLastError("mine");
    printf("%s\n", TVMGetLastError());
}

int main(void)
{
    const TVMModule *library = TVMSystemLibEntryPoint();
    TVMModuleHandle module;
    TVMGraphExecutor *old;
    DLTensor in = tensor(NULL, 4, in_shape);
    DLTensor out = tensor(scores, 2, out_shape);

#if MISTAKE == 1
    struct tvmgen_default_inputs inputs = {.image = pictures[0]};
    struct tvmgen_default_outputs outputs = {.scores = scores};

    CHECK(tvmgen_default_run(&inputs, &outputs) == 0);
#endif
    CHECK(TVMInitializeRuntime() == kTvmErrorNoError);
    CHECK_EQ(TVMModCreateFromCModule(library, &module), 0, "no %s", "module");
    for (int turn = 0; turn < 2; turn++) {
        CHECK(TVMGraphExecutor_Create(turn == 0 ? (char *)graph_json : NULL,
                                      module, &device, &executor) == 0);
        CHECK(TVMGraphExecutor_LoadParams(executor, (char *)params_bin,
                                          params_bin_len) == 0);
        CHECK_EQ(TVMGraphExecutor_GetNumInputs(executor), 1, "inputs");
        CHECK_EQ(TVMGraphExecutor_GetNumOutputs(executor), 1, "outputs");
        CHECK_EQ(TVMGraphExecutor_GetInputIndex(executor, "image"), 0, "index");
        if (MISTAKE != 0)
            mistake(MISTAKE);
        for (int p = 0; p < PICTURES; p++) {
            in.data = pictures[0]; /* byte_offset counts */
            in.byte_offset = p * sizeof pictures[0];
            TVMGraphExecutor_SetInput(executor, "image", &in);
            for (int again = 0; again < 2; again++) /* the input stays */
                TVMGraphExecutor_Run(executor);
            TVMGraphExecutor_GetOutput(executor, 0, &out);
            for (unsigned i = 0; i < sizeof scores; i++)
                printf("%d ", scores[i]);
            printf("\n");
        }
        if (turn == 1)
            refused(module);
        old = executor;
        CHECK(TVMGraphExecutor_Release(&executor) == 0 && executor == NULL);
        CHECK(TVMGraphExecutor_Release(&old) == -1);
    }
    return TVMModFree(module);
}
