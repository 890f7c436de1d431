/* run.c: the runner of the step tables.
 * Knows no operator: a step is a kernel and the rows that it reads and writes,
 * or a task of the runtime's own. The const tables are trusted. */
#include "crt/slots.h"

/* Where an operand begins: all of one that has no rows. */
static uint8_t *place_of(const struct crt_graph *g, const struct crt_operand *o)
{
    return (uint8_t *)g->base[o->buffer] + o->at;
}

/* Writes the window of row pointers of one operand to p; returns its end. */
static void **window_of(const struct crt_graph *g, const struct crt_operand *o,
                        void **p, uint32_t image, uint32_t band)
{
    const struct crt_rows *r = &g->model->rows[o->rows];
    uint8_t *row0 = place_of(g, o);
    uint32_t pad = (uint32_t)r->pad;
    uint32_t row = band * r->stride - pad;
    void **end = p + r->window;

    if (image != 0u && r->stride != 0u && r->ring == r->count) {
        row0 += (size_t)image * r->count * r->row_bytes;
    }
    do { /* above row 0: huge numbers */
        if (row < r->count) {
            uint32_t turn = row;
            if (turn >= r->ring) {
                turn %= r->ring;
            }
            *p = row0 + (size_t)turn * r->row_bytes;
        } else {
            *p = crt_unconst(r->pad_row);
        }
        row++;
        p++;
    } while (p != end);
    return p;
}

#ifndef CRT_NO_HOOK
/* Tells the hook of the rows that a step has just written. */
static int report(const struct crt_graph *g, const struct crt_step *step,
                  void *const *p, uint32_t image, uint32_t band)
{
    const struct crt_rows *out = &g->model->rows[step->operands->rows];
    ptrdiff_t index = step - g->model->steps;
    uint32_t row = band * out->stride;
    uint32_t left = out->count - row;
    uint32_t count = out->window < left ? out->window : left;
    uint32_t piece = out->ring == out->count ? count : 1u;
    uint32_t i;

    for (i = 0; i < count; i += piece) {
        if (g->hook(g->hook_context, (uint32_t)index,
                    image * out->count + row + i, piece, p[i]) != 0) {
            return CRT_ERR_STOPPED;
        }
    }
    return CRT_OK;
}
#endif

int crt_run_band(const struct crt_graph *g, const struct crt_step *step,
                 void **p, uint32_t image, uint32_t band)
{
    const struct crt_operand *operand = step->operands;
    const void *const *constant = step->constants;
    void **at = p;
    uint32_t left = (uint32_t)step->output_count + step->input_count;

    for (; left != 0u; left--, operand++) {
        at = window_of(g, operand, at, image, band);
    }
    for (left = step->constant_count; left != 0u; left--, at++) {
        *at = crt_unconst(*constant);
        constant++;
        if (*at == NULL) { /* a parameter, which is bound */
            *at = place_of(g, operand);
            operand++;
        }
    }
    if (step->scratch_count != 0u) {
        *at = place_of(g, operand);
    }
    step->kernel(p, step->args);
#ifndef CRT_NO_HOOK
    if (g->hook != NULL) {
        return report(g, step, p, image, band);
    }
#endif
    return CRT_OK;
}

int crt_run_bands(const struct crt_graph *g, const struct crt_step *step,
                  void **p)
{
    uint32_t image;
    uint32_t band;

    for (image = 0; image < step->images; image++) {
        for (band = 0; band < step->bands; band++) {
            if (crt_run_band(g, step, p, image, band) != CRT_OK) {
                return CRT_ERR_STOPPED;
            }
        }
    }
    return CRT_OK;
}

int crt_step_run(const struct crt_model *model, uint32_t index,
                 void *const *base, void **pointers)
{
    struct crt_graph g; /* what the bands of a step ask of one */

    if (index >= model->step_count) {
        return CRT_ERR_INDEX;
    }
    if (model->steps[index].kernel == NULL) {
        return CRT_ERR_TASK;
    }
    g.model = model;
    g.base = (void **)crt_unconst((const void *)base);
#ifndef CRT_NO_HOOK
    g.hook = NULL;
#endif
    return crt_run_bands(&g, &model->steps[index], pointers);
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
    return crt_run_bands(g, step, p);
}

/* ---- runs ---------------------------------------------------------------- */

int crt_is_home(const struct crt_graph *g, uint32_t t, uint32_t flags)
{
    const struct crt_tensor *tensor = &g->model->tensors[t];

    return (tensor->flags & flags) == flags &&
           *crt_slot(g, t) == crt_home(g, tensor);
}

void crt_take_back_home(struct crt_graph *g, uint32_t flags)
{
    uint32_t i;

    for (i = 0; i < g->model->input_count; i++) {
        if (crt_is_home(g, i, flags) != 0) {
            crt_take_back(g, i);
        }
    }
}

/* Checks that all is bound and given; then inputs' memory is used up. The
 * shared storage is this instance's until `end`. */
int crt_begin(struct crt_graph *g)
{
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
    crt_take_back_home(g, CRT_TENSOR_CONSUMED);
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
