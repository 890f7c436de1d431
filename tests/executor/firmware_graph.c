/* Firmware as it is written for microTVM's graph executor: runtime, system
 * library, executor, parameters, DLTensors; only the include is another. Prints
 * the outputs of its pictures, then does all that can go wrong. */
#include "crt/compat_tvm.h"

#include <stdio.h>
#include <string.h>

#include "pictures.h"

static const char graph_json[] = "{\"nodes\": []}";
static const DLDevice device = {kDLCPU, 0};
static TVMGraphExecutor *executor;
static int8_t output_data[5];
static int64_t output_shape[2] = {1, 5};
static int64_t input_shape[4] = {1, 8, 8, 3};

#define CHECK(x)                                                               \
    do {                                                                       \
        if (!(x)) {                                                            \
            printf("line %d: %s\n", __LINE__, #x);                             \
            return 1;                                                          \
        }                                                                      \
    } while (0)

static DLTensor tensor(const void *data, int32_t ndim, int64_t *shape)
{
    DLTensor made;

    memset(&made, 0, sizeof made);
    made.data = (void *)(uintptr_t)data;
    made.device = device;
    made.ndim = ndim;
    made.dtype.code = kDLInt;
    made.dtype.bits = 8;
    made.dtype.lanes = 1;
    made.shape = shape;
    return made;
}

static int load(void)
{
    const TVMModule *library = TVMSystemLibEntryPoint();
    TVMModuleHandle handle;

    CHECK(TVMInitializeRuntime() == kTvmErrorNoError);
    CHECK(TVMModCreateFromCModule(library, &handle) == 0);
    CHECK(TVMGraphExecutor_Create(graph_json, handle, &device, &executor) == 0);
    if (params_size != 0)
        CHECK(TVMGraphExecutor_LoadParams(executor, (const char *)params,
                                          params_size) == 0);
    CHECK(TVMGraphExecutor_GetNumInputs(executor) == 1);
    CHECK(TVMGraphExecutor_GetNumOutputs(executor) == 1);
    CHECK(TVMGraphExecutor_GetInputIndex(executor, "image") == 0);
    return 0;
}

static int infer(void)
{
    DLTensor out = tensor(output_data, 2, output_shape);
    unsigned p;
    unsigned i;

    for (p = 0; p < sizeof pictures / sizeof pictures[0]; p++) {
        DLTensor in = tensor(pictures[p], 4, input_shape);

        TVMGraphExecutor_SetInput(executor, "image", &in);
        TVMGraphExecutor_Run(executor);
        CHECK(TVMGraphExecutor_GetOutput(executor, 0, &out) == 0);
        for (i = 0; i < sizeof output_data; i++)
            printf("%d ", output_data[i]);
        printf("\n");
    }
    return 0;
}

/* What TVM's does not check. */
static int misuse_tensors(void)
{
    static int64_t planes[4] = {1, 3, 8, 8};
    int64_t strides[4] = {192, 24, 3, 1};
    DLTensor in = tensor(pictures[0], 4, input_shape);
    DLTensor out = tensor(output_data, 2, output_shape);

    in.strides = strides;
    in.dtype.lanes = 0;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == 0);
    strides[2] = 4;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == CRT_ERR_STRIDES);
    in.strides = NULL;
    in.shape = planes;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == CRT_ERR_SHAPE);
    in.shape = input_shape;
    in.ndim = 3;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == CRT_ERR_SHAPE);
    in.ndim = 4;
    in.dtype.lanes = 2;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == CRT_ERR_DTYPE);
    in.dtype.lanes = 1;
    in.dtype.bits = 4;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == CRT_ERR_DTYPE);
    in.dtype.bits = 8;
    in.data = NULL;
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_SetInput(executor, "audio", &in) == CRT_ERR_NAME);
    CHECK(TVMGraphExecutor_GetOutput(executor, 1, &out) == CRT_ERR_INDEX);
    CHECK(TVMGraphExecutor_GetOutput(executor, -1, &out) == CRT_ERR_INDEX);
    out.shape = input_shape;
    CHECK(TVMGraphExecutor_GetOutput(executor, 0, &out) == CRT_ERR_SHAPE);
    return 0;
}

/* byte_offset counts: the second picture from the address of the first. */
static int offset(void)
{
    int8_t before[sizeof output_data];
    DLTensor in = tensor(pictures[0], 4, input_shape);
    DLTensor out = tensor(before, 2, output_shape);

    in.byte_offset = sizeof pictures[0];
    CHECK(TVMGraphExecutor_SetInput(executor, "image", &in) == 0);
    CHECK(TVMGraphExecutor_Run(executor) == 0);
    CHECK(TVMGraphExecutor_GetOutput(executor, 0, &out) == 0);
    CHECK(memcmp(before, output_data, sizeof before) == 0);
    return 0;
}

static int misuse_lifetime(void)
{
    const TVMModule *library = TVMSystemLibEntryPoint();
    TVMModuleHandle handle = (TVMModuleHandle)(uintptr_t)library;
    TVMGraphExecutor *other = executor;
    TVMGraphExecutor *none = NULL;
    DLDevice second = {kDLCPU, 0};

    CHECK(TVMGraphExecutor_Create(NULL, handle, &device, &none) ==
          CRT_ERR_IN_USE);
    CHECK(none == NULL);
    if (params_size != 0) {
        CHECK(TVMGraphExecutor_LoadParams(executor, "TVM's own blob, say",
                                          20) != 0);
        CHECK(TVMGraphExecutor_Run(executor) == CRT_ERR_UNBOUND);
    } else {
        CHECK(TVMGraphExecutor_LoadParams(executor, "blob", 4) == CRT_ERR_NAME);
    }
    CHECK(TVMGraphExecutor_Release(&executor) == 0);
    CHECK(executor == NULL);
    CHECK(TVMGraphExecutor_Release(&executor) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_Release(NULL) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_Run(other) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_Run(NULL) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_LoadParams(other, "blob", 4) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_GetNumInputs(other) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_GetNumOutputs(NULL) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_GetOutput(other, 0, NULL) == CRT_ERR_NULL);
    CHECK(TVMModCreateFromCModule(NULL, &handle) == CRT_ERR_NULL);
    CHECK(TVMModCreateFromCModule(library, NULL) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_Create(NULL, NULL, &device, &none) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_Create(NULL, handle, NULL, &none) == CRT_ERR_NULL);
    CHECK(TVMGraphExecutor_Create(NULL, handle, &device, NULL) == CRT_ERR_NULL);
    memset(&second, 0x0c, sizeof second);
    CHECK(TVMGraphExecutor_Create(NULL, handle, &second, &none) ==
          CRT_ERR_DEVICE);
    return 0;
}

int main(void)
{
    int i;

    if (load() || infer() || offset() || misuse_tensors() || misuse_lifetime())
        return 1;
    for (i = 0; i < 2; i++) { /* again: nothing is left of the time before */
        if (load() || infer() || TVMGraphExecutor_Release(&executor))
            return 1;
    }
    return 0;
}
