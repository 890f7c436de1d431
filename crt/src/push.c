/* push.c: runs that begin with the first row of an input and end with its last.
 * A pushed input is a step without a kernel in a stage in lock step, whose
 * bands are the rows; the stage stops there until the caller brings one. */
#include "crt/push.h"

#include "crt/lockstep.h"
#include "crt/slots.h"

/* crt_graph.stage while rows are awaited: no stage has this number */
#define PUSHING 0xFFFFu

/* A pushed input: its stage, its step there from 1, and its rows. */
struct feed {
    const struct crt_stage *stage;
    const struct crt_operand *operand;
    const struct crt_rows *rows;
    uint32_t step;
};

static uint16_t *counters(const struct crt_graph *g)
{
    return (uint16_t *)(void *)((uint8_t *)g->base[0] + g->model->counters);
}

static int is_feed(const struct crt_step *step)
{
    return step->kernel == NULL && step->args[0] == (int32_t)CRT_TASK_INPUT;
}

static int find(const struct crt_graph *g, uint32_t input, struct feed *f)
{
    const struct crt_model *model;
    uint32_t i;

    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    model = g->model;
    if (input >= model->input_count) {
        return CRT_ERR_INDEX;
    }
    if (model->stages == NULL) {
        return CRT_ERR_PUSHED;
    }
    f->stage = model->stages;
    for (; f->stage != model->stages + model->stage_count; f->stage++) {
        for (i = 0; i < f->stage->count; i++) {
            const struct crt_step *step = &model->steps[f->stage->first + i];

            if (is_feed(step) && (uint32_t)step->args[1] == input) {
                f->operand = step->operands;
                f->rows = &model->rows[step->operands->rows];
                f->step = i + 1u;
                return *crt_slot(g, input) == NULL ? CRT_OK : CRT_ERR_PUSHED;
            }
        }
    }
    return CRT_ERR_PUSHED;
}

/* Bands that a step of the stage has computed, or rows that were pushed: never
 * more than there are, whatever bits of the counter have flipped. */
static uint32_t done(const struct crt_graph *g, const struct feed *f,
                     uint32_t step)
{
    const uint32_t bands = g->model->steps[f->stage->first + step - 1u].bands;
    uint32_t count = 0;

    if (g->stage == PUSHING) {
        count = counters(g)[step - 1u];
    }
    return count < bands ? count : bands;
}

/* Pushed inputs have no memory, and are not given before a run: for the moment
 * of its beginning they are as if both were so. */
static int begin(struct crt_graph *g, void **pointers, const struct feed *f)
{
    const struct crt_model *model = g->model;
    uint32_t i;
    int error;

    for (i = 0; i < model->input_count; i++) {
        if ((model->tensors[i].flags & CRT_TENSOR_PUSHED) != 0u) {
            g->fresh[i / 32u] |= crt_fresh_bit(i);
            *crt_slot(g, i) = g->base[0];
        }
    }
    error = crt_begin(g);
    for (i = 0; i < model->input_count; i++) {
        if ((model->tensors[i].flags & CRT_TENSOR_PUSHED) != 0u) {
            g->fresh[i / 32u] &= ~crt_fresh_bit(i);
            *crt_slot(g, i) = NULL;
        }
    }
    if (error != CRT_OK) {
        return error;
    }
    for (i = 0; error == CRT_OK && &model->stages[i] != f->stage; i++) {
        error = crt_run_stage(g, pointers, i);
    }
    if (error != CRT_OK) {
        return crt_end(g, error);
    }
    for (i = 0; i < f->stage->count; i++) {
        counters(g)[i] = 0;
    }
    g->stage = PUSHING;
    return CRT_OK;
}

/* All rows are there, and the stage is done. */
static int finish(struct crt_graph *g, void **pointers, const struct feed *f)
{
    const struct crt_model *model = g->model;
    const ptrdiff_t pushed = f->stage - model->stages;
    uint32_t stage = (uint32_t)pushed + 1u;
    int error = CRT_OK;

    for (; error == CRT_OK && stage != model->stage_count; stage++) {
        error = crt_run_stage(g, pointers, stage);
    }
    return crt_end(g, error);
}

int crt_graph_push_rows(struct crt_graph *g, void **pointers, uint32_t input,
                        const void *rows, uint32_t count)
{
    const uint8_t *from = (const uint8_t *)rows;
    struct feed f;
    int error = find(g, input, &f);
    uint32_t bytes;
    uint32_t at;

    if (error != CRT_OK) {
        return error;
    }
    if (pointers == NULL || rows == NULL) {
        return CRT_ERR_NULL;
    }
    if (count > f.rows->count - done(g, &f, f.step)) {
        return CRT_ERR_ROWS;
    }
    bytes = g->model->tensors[input].bytes / f.rows->count;
    if (crt_check_place(g, input, rows, count * bytes) != CRT_OK) {
        return CRT_ERR_OVERLAP;
    }
    if (g->stage != PUSHING) {
        error = begin(g, pointers, &f);
    }
    if (error != CRT_OK) {
        return error;
    }
    for (;;) {
        error = crt_lockstep_on(g, pointers, f.stage);
        if (error < 0) {
            return crt_end(g, error);
        }
        if (error == 0) {
            return finish(g, pointers, &f);
        }
        if (count == 0u) {
            return CRT_OK;
        }
        if ((uint32_t)error != f.step) {
            return CRT_ERR_ROWS;
        }
        at = counters(g)[f.step - 1u]++ % f.rows->ring;
        crt_copy((uint8_t *)g->base[f.operand->buffer] + f.operand->at +
                     (size_t)at * f.rows->row_bytes,
                 from, bytes);
        from = &from[bytes];
        count--;
    }
}

int crt_graph_rows_left(const struct crt_graph *g, uint32_t input)
{
    struct feed f;
    int error = find(g, input, &f);
    uint32_t left;

    if (error != CRT_OK) {
        return error;
    }
    left = f.rows->count - done(g, &f, f.step);
    return (int)left;
}

/* The step that the stage of `f` goes on with, as crt_lockstep_on finds it:
 * while rows are awaited, the input whose rows they are. *rows: how many of
 * what it makes must be there, in all. */
static uint32_t awaited(const struct crt_graph *g, const struct feed *f,
                        int32_t *rows)
{
    const struct crt_step *steps = &g->model->steps[f->stage->first];
    const struct crt_link *link = &g->model->links[f->stage->link];
    uint32_t step = f->stage->count;
    uint32_t reader = 0;

    while (step != 1u && done(g, f, step) == steps[step - 1u].bands) {
        step--;
    }
    *rows = steps[step - 1u].bands;
    for (; link->reader != 0u; link++) {
        int32_t need =
            (int32_t)done(g, f, link->reader) * (int32_t)link->stride;
        int32_t made;

        need += link->ahead;
        if (need > (int32_t)link->rows) {
            need = (int32_t)link->rows;
        }
        made = (int32_t)done(g, f, link->maker) * (int32_t)link->made;
        if (made >= need) {
            continue;
        }
        if (link->reader == step) {
            reader = step;
            step = link->maker;
            *rows = need;
        } else if (link->reader == reader && link->maker == step &&
                   need > *rows) {
            *rows = need; /* the same rows, read in another way too */
        } else {
            /* of another step */
        }
    }
    return step;
}

int crt_graph_rows_wanted(const struct crt_graph *g, uint32_t input)
{
    struct feed f;
    int32_t rows;
    uint32_t step;
    int error = find(g, input, &f);

    if (error != CRT_OK) {
        return error;
    }
    step = awaited(g, &f, &rows);
    if (g->model->steps[f.stage->first + step - 1u].kernel != NULL) {
        return 1; /* only before the first row */
    }
    return step == f.step ? (int)(rows - (int32_t)done(g, &f, step)) : 0;
}

int crt_graph_push_inputs(struct crt_graph *g, void **pointers,
                          const void *const *inputs)
{
    uint32_t i;
    int error = CRT_ERR_PUSHED; /* none takes rows, or all were bound */

    if (!crt_is_ready(g) || inputs == NULL) {
        return CRT_ERR_NULL;
    }
    crt_stop(g);
    do {
        for (i = 0; i < g->model->input_count; i++) {
            const uint8_t *from = (const uint8_t *)inputs[i];
            int rows = crt_graph_rows_wanted(g, i);
            struct feed f;

            if (rows <= 0) {
                continue;
            }
            error = find(g, i, &f);
            if (from != NULL) {
                from += (size_t)done(g, &f, f.step) *
                        (g->model->tensors[i].bytes / f.rows->count);
            }
            error = crt_graph_push_rows(g, pointers, i, from, (uint32_t)rows);
            if (error != CRT_ERR_ROWS) {
                break;
            }
        }
    } while (error == CRT_OK && g->stage == PUSHING);
    return error;
}

int crt_graph_pushed(const struct crt_graph *g)
{
    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    return g->valid ? CRT_OK : CRT_ERR_INPUT_MISSING;
}
