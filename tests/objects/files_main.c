/* files_main.c: runs every model of a list on QEMU, inputs from one file of the
 * host, outputs to another. Knows no model. */
#include "board.h"
#include "crt/graph.h"

extern const struct crt_model *const models[];
extern const uint32_t model_count;

static struct crt_graph graph;
static void *base[64];
static uint32_t fresh[2];
static void *pointers[1024];
static union {
    uint8_t bytes[1 << 18];
    int64_t aligned[2];
} arena __attribute__((aligned(16)));

static int run(const struct crt_model *model, int32_t from, int32_t to)
{
    const struct crt_region region = {arena.bytes, sizeof arena.bytes};
    int error = crt_graph_init(&graph, model, base, fresh, &region, 1);
    uint32_t i;

    for (i = 0; error == CRT_OK && i < model->input_count; i++) {
        const uint32_t bytes = crt_graph_input_info(&graph, i)->bytes;
        if (board_read(from, crt_graph_input(&graph, i), bytes) !=
            (int32_t)bytes)
            return -100;
    }
    if (error == CRT_OK)
        error = crt_graph_run(&graph, pointers);
    for (i = 0; error == CRT_OK && i < model->output_count; i++) {
        const uint32_t bytes = crt_graph_output_info(&graph, i)->bytes;
        if (board_write(to, crt_graph_output(&graph, i), bytes) !=
            (int32_t)bytes)
            return -101;
    }
    return error;
}

int main(void)
{
    const int32_t from = board_open("inputs.bin", 0);
    const int32_t to = board_open("outputs.bin", 1);
    int error = from < 0 || to < 0 ? -102 : 0;
    uint32_t i;

    for (i = 0; error == 0 && i < model_count; i++)
        error = run(models[i], from, to);
    board_close(to);
    return error;
}
