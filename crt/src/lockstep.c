/* lockstep.c: steps advanced together, so that tensors between them are rings.
 * Linked only by models that have such stages. All state is in the counters:
 * how many bands each step has computed. */
#include "crt/lockstep.h"

int crt_lockstep_on(struct crt_graph *g, void **p, const struct crt_stage *s)
{
    const struct crt_model *model = g->model;
    const struct crt_step *steps = &model->steps[s->first];
    const struct crt_link *links = &model->links[s->link];
    const struct crt_link *from = NULL;
    const struct crt_link *begun;
    uint16_t *done = crt_lockstep_counters(g);
    uint32_t last = s->count;
    uint32_t step;
    uint32_t band;
    int error;

    while (last != 0u) {
        step = last;
        if (from != NULL) { /* a row more is made: all before it is as it was */
            step = from->reader;
        } else if (done[last - 1u] == steps[last - 1u].bands) {
            last--;
            continue;
        } else {
            from = links;
        }
        begun = from;
        step = crt_lockstep_maker(&from, done, step);
        if (steps[step - 1u].kernel == NULL) {
            return (int)step;
        }
        band = done[step - 1u];
        error = CRT_ERR_ROWS; /* a bit of it has flipped */
        if (band < steps[step - 1u].bands) {
            done[step - 1u]++;
            error = crt_run_band(g, &steps[step - 1u], p, 0, band);
        }
        if (error != CRT_OK) {
            step--;
            step += s->first; /* its index */
            g->failed_step = (int16_t)step;
            return error;
        }
        if (from == NULL && begun->asker != 0u) { /* none was lacking */
            from = &links[begun->asker - 1u];
        }
    }
    return CRT_OK;
}

int crt_lockstep(struct crt_graph *g, void **p, const struct crt_stage *s)
{
    uint16_t *done = crt_lockstep_counters(g);
    uint32_t step;
    int error;

    for (step = 0; step < s->count; step++) {
        done[step] = 0;
    }
    error = crt_lockstep_on(g, p, s);
    return error > 0 ? CRT_ERR_INPUT_MISSING : error;
}
