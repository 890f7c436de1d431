/* A Zephyr runtime that gets graph and parameters at run time, in one blob as
 * they come over a line, and takes the input's name from the executor's fields.
 */
#include <dlpack/dlpack.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/packed_func.h>
#include <zephyr/kernel.h>

#include "graph.json.c"
#include "params.bin.c"
#include "pictures.h"

static const DLDevice g_device = {kDLCPU, 1};
static TVMGraphExecutor *gp_executor = NULL;
static TVMModuleHandle g_module;
/* graph, then parameters: no zero between them */
static uint8_t g_blob[sizeof graph_json + sizeof params_bin]
    __attribute__((aligned(16)));

void TVMLogf(const char *msg, ...)
{
    printk("%s", msg);
}

void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error)
{
    printk("TVMPlatformAbort: %08x\n", (unsigned)error);
    for (;;)
        ;
}

static int load_model(const uint8_t *graph, const uint8_t *params,
                      uint32_t size)
{
    int status;

    if (gp_executor != NULL) {
        status = TVMGraphExecutor_Release(&gp_executor);
        if (status != 0)
            return status;
    }
    status = TVMGraphExecutor_Create((const char *)graph, g_module, &g_device,
                                     &gp_executor);
    if (status != 0)
        return status;
    return TVMGraphExecutor_LoadParams(gp_executor, (const char *)params, size);
}

static void load_input(const uint8_t *input)
{
    int64_t shape[4] = {1, 8, 8, 3};
    DLTensor in;
    uint32_t id = gp_executor->input_nodes[0];
    char *name = gp_executor->nodes[id].name;

    in.device = g_device;
    in.ndim = 4;
    in.dtype.code = kDLInt;
    in.dtype.bits = 8;
    in.dtype.lanes = 0;
    in.shape = shape;
    in.strides = NULL;
    in.byte_offset = 0;
    in.data = (void *)input;
    TVMGraphExecutor_SetInput(gp_executor, name, &in);
}

int main(void)
{
    const uint32_t text = (uint32_t)graph_json_len;
    int64_t shape[] = {1, 5};
    int8_t scores[5];
    DLTensor out = {scores, g_device, 2, {kDLInt, 8, 0}, shape, NULL, 0};

    memcpy(g_blob, params_bin, params_bin_len);
    memcpy(g_blob + params_bin_len, graph_json, text);
    if (TVMInitializeRuntime() != 0 ||
        TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &g_module) != 0)
        return 1;
    for (int p = 0; p < PICTURES; p++) {
        int status =
            load_model(g_blob + params_bin_len, g_blob, params_bin_len);

        if (status != 0) {
            printk("model: %x: %s\n", (unsigned)status, TVMGetLastError());
            return 1;
        }
        load_input((const uint8_t *)pictures[p]);
        TVMGraphExecutor_Run(gp_executor);
        if (TVMGraphExecutor_GetOutput(gp_executor, 0, &out) != 0)
            return 1;
        for (int i = 0; i < 5; i++)
            printk("%d ", scores[i]);
        printk("\n");
    }
    TVMGraphExecutor_Release(&gp_executor);
    return TVMModFree(g_module);
}
