/* A bare-metal program for the AOT executor with the C interface: no memory
 * manager, no hooks but what the linker asks for, outputs by the name `output`.
 */
#include <stdio.h>
#include <tvm/runtime/c_runtime_api.h>

#include "pictures.h"
#include "tvmgen_default.h"

static int8_t output[TVMGEN_DEFAULT_OUTPUT_SIZE + 1];

int main(void)
{
    for (int p = 0; p < PICTURES; p++) {
        struct tvmgen_default_inputs inputs = {.image = pictures[p]};
        /* not aligned: an odd address */
        struct tvmgen_default_outputs outputs = {.output = output + 1};
        int32_t status = tvmgen_default_run(&inputs, &outputs);

        if (status != 0) {
            printf("Error: %d\n", (int)status);
            return 1;
        }
        for (int i = 0; i < TVMGEN_DEFAULT_OUTPUT_SIZE; i++)
            printf("%d ", output[i + 1]);
        printf("\n");
    }
    struct tvmgen_default_inputs none = {.image = NULL};
    struct tvmgen_default_outputs outputs = {.output = output};

    return tvmgen_default_run(&none, &outputs) == 0;
}
