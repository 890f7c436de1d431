/* A standalone program around a bundle: graph and parameters as arrays of xxd.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bundle.h"
#include "graph.json.c"
#include "params.bin.c"
#include "pictures.h"

int main(void)
{
    char *json_data = (char *)(graph_json);
    char *params_data = (char *)(params_bin);
    void *handle = tvm_runtime_create(json_data, params_data, params_bin_len);
    DLDevice dev = {kDLCPU, 0};
    DLDataType dtype = {kDLInt, 8, 1};
    int64_t shape[4] = {1, 8, 8, 3};
    int64_t out_shape[2] = {1, 5};
    static int8_t scores[5];
    DLTensor input = {0};
    DLTensor output = {0};

    input.device = dev;
    input.ndim = 4;
    input.dtype = dtype;
    input.shape = shape;
    output.data = scores;
    output.device = dev;
    output.ndim = 2;
    output.dtype = dtype;
    output.shape = out_shape;
    for (int p = 0; p < PICTURES; p++) {
        input.data = pictures[p];
        tvm_runtime_set_input(handle, "image", &input);
        tvm_runtime_run(handle);
        tvm_runtime_get_output(handle, 0, &output);
        for (int i = 0; i < 5; i++)
            printf("%d ", scores[i]);
        printf("\n");
    }
    tvm_runtime_destroy(handle);
    return 0;
}
