/* Firmware as it is written for microTVM's AOT executor with the C interface:
 * only "tvmgen_default.h" is ours. Prints the outputs of its pictures. */
#include "tvmgen_default.h"

#include <stdio.h>

#include "pictures.h"

static int8_t output_data[TVMGEN_DEFAULT_SCORES_SIZE];

int main(void)
{
    struct tvmgen_default_inputs inputs;
    struct tvmgen_default_outputs outputs;
    unsigned p;
    unsigned i;

    printf("workspace: %u\n", TVMGEN_DEFAULT_WORKSPACE_SIZE);
    for (p = 0; p < sizeof pictures / sizeof pictures[0]; p++) {
        int32_t status;

        inputs.image = (void *)pictures[p];
        outputs.scores = (void *)output_data;
        status = tvmgen_default_run(&inputs, &outputs);
        if (status != 0) {
            printf("Error: %d\n", (int)status);
            return 1;
        }
        for (i = 0; i < TVMGEN_DEFAULT_SCORES_SIZE; i++)
            printf("%d ", output_data[i]);
        printf("\n");
    }
    inputs.image = NULL;
    return tvmgen_default_run(&inputs, &outputs) == 0;
}
