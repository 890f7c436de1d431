/* Two instances of one model, set, run and read at the same time by two
 * threads; exit code 1 if one of them ever sees another result. */
#include "model.h"

#include <pthread.h>
#include <string.h>

#define RUNS 200

struct worker {
    struct crt_graph graph;
    void *base[7];
    uint32_t fresh[CRT_FRESH_WORDS(2)];
    int8_t arena[ARENA_BYTES] __attribute__((aligned(16)));
    int8_t kept[KEPT_BYTES] __attribute__((aligned(16)));
    int8_t a[24];
    int8_t y[12];
    int failures;
};

static int once(struct worker *w, int8_t *y)
{
    static const int8_t b[COLS] = {1, 2, 3};
    void *pointers[6];

    return crt_graph_set_input(&w->graph, 0, w->a, 24) |
           crt_graph_set_input(&w->graph, 1, b, 3) |
           crt_graph_run(&w->graph, pointers) |
           crt_graph_get_output(&w->graph, 0, y, 12);
}

static void *work(void *argument)
{
    struct worker *w = (struct worker *)argument;
    int8_t y[12];
    int i;

    for (i = 0; i < RUNS; i++)
        w->failures += once(w, y) != CRT_OK || memcmp(y, w->y, 12) != 0;
    return NULL;
}

int main(void)
{
    static struct worker workers[2];
    pthread_t threads[2];
    int i;

    for (i = 0; i < 2; i++) {
        struct worker *w = &workers[i];
        struct crt_region regions[2] = {{w->arena, ARENA_BYTES},
                                        {w->kept, KEPT_BYTES}};

        memset(w->a, i * 3 + 1, sizeof w->a);
        if (crt_graph_init(&w->graph, &model, w->base, w->fresh, regions, 2))
            return 1;
        if (once(w, w->y) != CRT_OK)
            return 1;
    }
    if (memcmp(workers[0].y, workers[1].y, 12) == 0)
        return 1;
    for (i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return workers[0].failures != 0 || workers[1].failures != 0;
}
