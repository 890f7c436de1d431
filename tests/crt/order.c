/* order.c: in which order bands of a stage in lock step are computed. Reads
 * from stdin how many steps and links there are, the bands of each step and the
 * seven numbers of each link; prints the steps, from 1, as they come. */
#include "crt/graph.h"
#include "crt/lockstep.h"

#include <stdio.h>

#define MOST 64

static struct crt_step steps[MOST];
static struct crt_link links[MOST + 1];
static int32_t numbers[MOST];
static uint16_t counters[MOST];

static void came(void *const *p, const int32_t *args)
{
    (void)p;
    printf("%d ", (int)args[0]);
}

static unsigned next(void)
{
    int value = 0;

    return scanf("%d", &value) == 1 ? (unsigned)value : 0u;
}

int main(void)
{
    struct crt_stage stage = {0, 0, 0, 0};
    struct crt_model model = {0};
    struct crt_graph g = {0};
    void *base[1] = {counters};
    void *p[1] = {NULL};
    unsigned count = next();
    unsigned link_count = next();
    unsigned i;

    for (i = 0; i < count && i < MOST; i++) {
        numbers[i] = (int32_t)i + 1;
        steps[i].kernel = came;
        steps[i].args = &numbers[i];
        steps[i].images = 1;
        steps[i].bands = (uint16_t)next();
    }
    for (i = 0; i < link_count && i < MOST; i++) {
        links[i].reader = (uint8_t)next();
        links[i].maker = (uint8_t)next();
        links[i].stride = (uint16_t)next();
        links[i].ahead = (int16_t)next();
        links[i].rows = (uint16_t)next();
        links[i].made = (uint8_t)next();
        links[i].asker = (uint8_t)next();
    }
    stage.count = (uint8_t)count;
    model.steps = steps;
    model.links = links;
    g.model = &model;
    g.base = base;
    return crt_lockstep(&g, p, &stage);
}
