/* run.c: the runner of the step tables.
 * Knows no operator: a step is a kernel and the rows that it reads and writes,
 * or a task of the runtime's own. The const tables are trusted. */
#include "crt/slots.h"

/* Writes the window of row pointers of one operand to p; returns its end. */
static void **window_of(const struct crt_graph *g, const struct crt_operand *o,
                        void **p, uint32_t image, uint32_t band)
{
    const struct crt_rows *r = &g->model->rows[o->rows];
    uint8_t *row0 = (uint8_t *)g->base[o->buffer] + o->at;
    uint32_t pad = (uint32_t)r->pad;
    uint32_t row = band * r->stride - pad;
    uint32_t left = r->window;

    if (r->stride != 0u && r->ring == r->count) {
        row0 += (size_t)image * r->count * r->row_bytes;
    }
    for (; left != 0u; left--, row++, p++) { /* above row 0: huge numbers */
        if (row >= r->count) {
            *p = crt_unconst(r->pad_row);
        } else {
            *p = row0 +
                 (size_t)(row < r->ring ? row : row % r->ring) * r->row_bytes;
        }
    }
    return p;
}

/* Computes one band of one step. */
static void compute(const struct crt_graph *g, const struct crt_step *step,
                    void **p, uint32_t image, uint32_t band)
{
    const struct crt_operand *operand = step->operands;
    uint32_t constant = (uint32_t)0 - step->output_count - step->input_count;
    uint32_t last = (uint32_t)step->constant_count + step->scratch_count;
    void **end = p;

    for (; constant != last; constant++) {
        if (constant < step->constant_count &&
            step->constants[constant] != NULL) {
            *end++ = crt_unconst(step->constants[constant]);
        } else {
            end = window_of(g, operand++, end, image, band);
        }
    }
    step->kernel(p, step->args);
}

#ifndef CRT_NO_HOOK
/* Tells the hook of the rows that a step has just written. */
static int report(const struct crt_graph *g, void *const *p, uint32_t index,
                  uint32_t image, uint32_t band)
{
    const struct crt_operand *first = g->model->steps[index].operands;
    const struct crt_rows *out = &g->model->rows[first->rows];
    uint32_t row = band * out->stride;
    uint32_t left = out->count - row;
    uint32_t count = out->window < left ? out->window : left;
    uint32_t piece = out->ring == out->count ? count : 1u;
    uint32_t i;

    for (i = 0; i < count; i += piece) {
        if (g->hook(g->hook_context, index, image * out->count + row + i, piece,
                    p[i]) != 0) {
            return CRT_ERR_STOPPED;
        }
    }
    return CRT_OK;
}
#endif

int crt_run_bands(const struct crt_graph *g, uint32_t index, void **p,
                  uint32_t first, uint32_t end)
{
    const struct crt_step *step = &g->model->steps[index];
    uint32_t image;
    uint32_t band;

    for (image = 0; image < step->images; image++) {
        for (band = first; band < end; band++) {
            compute(g, step, p, image, band);
#ifndef CRT_NO_HOOK
            if (g->hook != NULL && report(g, p, index, image, band) != CRT_OK) {
                return CRT_ERR_STOPPED;
            }
#endif
        }
    }
    return CRT_OK;
}

void crt_step_run(const struct crt_model *model, uint32_t index,
                  void *const *base, void **pointers)
{
    struct crt_graph g; /* what the bands of a step ask of one */

    g.model = model;
    g.base = (void **)crt_unconst((const void *)base);
#ifndef CRT_NO_HOOK
    g.hook = NULL;
#endif
    (void)crt_run_bands(&g, index, pointers, 0, model->steps[index].bands);
}

/* The only task without a device. */
static int unpack(const struct crt_graph *g, const struct crt_step *step)
{
    const struct crt_operand *o = step->operands;

    if (g->model->unpack(step->constants[0], (uint32_t)step->args[1],
                         (uint8_t *)g->base[o->buffer] + o->at,
                         (uint32_t)step->args[2]) != 0) {
        return CRT_ERR_UNPACK;
    }
    return CRT_OK;
}

static int run_step(struct crt_graph *g, void **p, uint32_t index,
                    uint32_t device)
{
    const struct crt_step *step = &g->model->steps[index];
    int error = CRT_ON_CPU;

    if (step->kernel == NULL && step->args[0] == (int32_t)CRT_TASK_UNPACK) {
        return unpack(g, step);
    }
    if (step->kernel == NULL || device != 0u) {
        error = g->model->accelerator->step(g, index, device);
    }
    if (error != CRT_ON_CPU) {
        return error;
    }
    return crt_run_bands(g, index, p, 0, step->bands);
}

/* ---- runs ---------------------------------------------------------------- */

/* Checks that all is bound and given; then inputs' memory is used up. The
 * shared storage is this instance's until `end`. */
int crt_begin(struct crt_graph *g)
{
    uint32_t i;
    int error = g->ready ? CRT_OK : crt_graph_setup(g);

    if (error == CRT_OK) {
        error = crt_turn_begin(g);
    }
    if (error != CRT_OK) {
        return error;
    }
    if (crt_find_not_given(g) != NULL) {
        crt_turn_leave(g);
        return g->consumed ? CRT_ERR_INPUT_CONSUMED : CRT_ERR_INPUT_MISSING;
    }
    for (i = 0; i < g->model->input_count; i++) {
        if (crt_is_consumable(g, i) != 0) {
            g->fresh[i / 32u] &= ~crt_fresh_bit(i);
        }
    }
    g->consumed = 1;
    g->valid = 0;
    g->failed_step = -1;
    return CRT_OK;
}

int crt_run_stage(struct crt_graph *g, void **p, uint32_t index)
{
    const struct crt_stage *s = g->model->stages;
    uint32_t left = 1; /* the step of this number, if nothing is said */
    uint32_t device = 0;
    int error;

    if (s != NULL) {
        s += index;
        if (s->link != 0u) {
            return g->model->advance(g, p, s);
        }
        index = s->first;
        left = s->count;
        device = s->device;
    }
    do {
        error = run_step(g, p, index, device);
        if (error != CRT_OK) {
            g->failed_step = (int16_t)index;
            break;
        }
        index++;
    } while (--left != 0);
    return error;
}

/* Nothing goes on behind the caller's back: waits, whatever has happened. */
static int settle(struct crt_graph *g, int error)
{
    int late;

    if (g->model->accelerator == NULL) {
        return error;
    }
    late = g->model->accelerator->wait(g);
    return error != CRT_OK ? error : late;
}

int crt_end(struct crt_graph *g, int error)
{
    g->stage = 0;
    g->valid = error == CRT_OK;
    crt_turn_end(g);
    return error;
}

int crt_graph_run_stage(struct crt_graph *g, void **pointers, uint32_t stage)
{
    int error = CRT_OK;

    if (!crt_is_ready(g) || pointers == NULL) {
        return CRT_ERR_NULL;
    }
    if (stage >= g->model->stage_count) {
        return CRT_ERR_INDEX;
    }
    if (stage == 0u) {
        error = crt_begin(g);
    } else if (stage != g->stage) {
        crt_stop(g);
        error = CRT_ERR_STAGE;
    } else {
        /* the next one */
    }
    if (error != CRT_OK) {
        return error;
    }
    error = settle(g, crt_run_stage(g, pointers, stage));
    g->stage = (uint16_t)(stage + 1u);
    if (error == CRT_OK && g->stage < g->model->stage_count) {
        return CRT_OK;
    }
    return crt_end(g, error);
}

int crt_graph_run(struct crt_graph *g, void **pointers)
{
    uint32_t stage;
    int error;

    if (!crt_is_ready(g) || pointers == NULL) {
        return CRT_ERR_NULL;
    }
    error = crt_begin(g);
    if (error != CRT_OK) {
        return error;
    }
    for (stage = 0; error == CRT_OK && stage != g->model->stage_count;
         stage++) {
        error = crt_run_stage(g, pointers, stage);
    }
    return crt_end(g, settle(g, error));
}

#ifndef CRT_NO_HOOK
int crt_graph_set_hook(struct crt_graph *g, crt_hook *hook, void *context)
{
    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    g->hook = hook;
    g->hook_context = context;
    return CRT_OK;
}
#endif
