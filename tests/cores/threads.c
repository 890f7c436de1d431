/* A run on several cores as threads, under ThreadSanitizer, beside a run on
 * one. HEADER, MODEL, UPPER: the model; exit code 1 if a bit differs. */
#include HEADER

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define OF(end)     JOIN(MODEL, end)
#define SIZE(end)   JOIN(UPPER, end)

enum { RUNS = 2 };

static uint8_t arena[SIZE(_ARENA_BYTES)] __attribute__((aligned(16)));
static struct MODEL model;
static struct crt_cores cores;
static uint8_t input[INPUT_BYTES];
static uint8_t one[OUTPUT_BYTES];
static int last;

static int yields(void *context, uint32_t core)
{
    (void)context;
    (void)sched_yield();
    return core != 0 && __atomic_load_n(&last, __ATOMIC_ACQUIRE) != 0;
}

static void *work(void *number)
{
    do {
        (void)OF(_work)(&model, &cores, (uint32_t)(uintptr_t)number);
    } while (__atomic_load_n(&last, __ATOMIC_ACQUIRE) == 0);
    return NULL;
}

static int give(int run)
{
    uint32_t i;

    for (i = 0; i < INPUT_BYTES; i++)
        input[i] = (uint8_t)(i * 2654435761u >> (5 + run));
#ifdef FLOATS
    for (i = 0; i < INPUT_BYTES / 4; i++) {
        float value = (float)(i * 37u % 101u) / 50 - (float)(run + 1);
        memcpy(input + 4 * i, &value, 4);
    }
#endif
    return crt_graph_set_input(&model.graph, 0, input, INPUT_BYTES);
}

int main(void)
{
    const struct OF(_memory) memory = SIZE(_MEMORY)(arena);
    pthread_t threads[CRT_CORES_MAX];
    int run;
    uintptr_t i;

    cores.wait = yields;
    if (OF(_init)(&model, &memory) != CRT_OK)
        return 2;
    for (i = 1; i < SIZE(_CORES); i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 3;
    for (run = 0; run < RUNS; run++) {
        if (give(run) != CRT_OK || OF(_run)(&model) != CRT_OK)
            return 4;
        memcpy(one, crt_graph_output(&model.graph, 0), OUTPUT_BYTES);
        if (give(run) != CRT_OK || OF(_run_cores)(&model, &cores) != CRT_OK)
            return 5;
        if (memcmp(one, crt_graph_output(&model.graph, 0), OUTPUT_BYTES) != 0)
            return 1;
    }
    __atomic_store_n(&last, 1, __ATOMIC_RELEASE);
    for (i = 1; i < SIZE(_CORES); i++)
        pthread_join(threads[i], NULL);
    return 0;
}
