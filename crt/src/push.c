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
    const struct crt_operand *rows;
    uint32_t step;
};

static uint16_t *counters(const struct crt_graph *g)
{
    return (uint16_t *)(void *)((uint8_t *)g->base[0] + g->model->counters);
}

static int is_feed(const struct crt_step *step)
{
    return step->kernel == NULL && step->args[0] == CRT_TASK_INPUT;
}

static int find(const struct crt_graph *g, uint32_t input, struct feed *f)
{
    const struct crt_model *model;
    uint32_t i;

    if (!crt_is_ready(g))
        return CRT_ERR_NULL;
    model = g->model;
    if (input >= model->input_count)
        return CRT_ERR_INDEX;
    for (f->stage = model->stages;
         f->stage != model->stages + model->stage_count; f->stage++) {
        for (i = 0; i < f->stage->count; i++) {
            const struct crt_step *step = &model->steps[f->stage->first + i];

            if (is_feed(step) && (uint32_t)step->args[1] == input) {
                f->rows = step->operands;
                f->step = i + 1u;
                return *crt_slot(g, input) == NULL ? CRT_OK : CRT_ERR_PUSHED;
            }
        }
    }
    return CRT_ERR_PUSHED;
}

static uint32_t done(const struct crt_graph *g, const struct feed *f)
{
    return g->stage == PUSHING ? counters(g)[f->step - 1u] : 0u;
}

/* Pushed inputs have no memory, and are not given before a run: for the moment
 * of its beginning they are as if both were so. */
static int begin(struct crt_graph *g, void **pointers, const struct feed *f)
{
    const struct crt_model *model = g->model;
    uint32_t i;
    int error;

    for (i = 0; i < model->input_count; i++) {
        if ((model->tensors[i].flags & CRT_TENSOR_PUSHED) != 0) {
            g->fresh[i / 32u] |= crt_fresh_bit(i);
            *crt_slot(g, i) = g->base[0];
        }
    }
    error = crt_begin(g);
    for (i = 0; i < model->input_count; i++) {
        if ((model->tensors[i].flags & CRT_TENSOR_PUSHED) != 0) {
            g->fresh[i / 32u] &= ~crt_fresh_bit(i);
            *crt_slot(g, i) = NULL;
        }
    }
    if (error != CRT_OK)
        return error;
    for (i = 0; error == CRT_OK && &model->stages[i] != f->stage; i++)
        error = crt_run_stage(g, pointers, &model->stages[i]);
    if (error != CRT_OK)
        return crt_end(g, error);
    for (i = 0; i < f->stage->count; i++)
        counters(g)[i] = 0;
    g->stage = PUSHING;
    return CRT_OK;
}

/* All rows are there, and the stage is done. */
static int finish(struct crt_graph *g, void **pointers, const struct feed *f)
{
    const struct crt_model *model = g->model;
    const struct crt_stage *stage = f->stage + 1;
    int error = CRT_OK;

    for (; error == CRT_OK && stage != model->stages + model->stage_count;
         stage++)
        error = crt_run_stage(g, pointers, stage);
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

    if (error != CRT_OK)
        return error;
    if (pointers == NULL || rows == NULL)
        return CRT_ERR_NULL;
    if (count > f.rows->rows - done(g, &f))
        return CRT_ERR_ROWS;
    if (g->stage != PUSHING)
        error = begin(g, pointers, &f);
    if (error != CRT_OK)
        return error;
    bytes = g->model->tensors[input].bytes / f.rows->rows;
    for (;;) {
        error = crt_lockstep_on(g, pointers, f.stage);
        if (error < 0)
            return crt_end(g, error);
        if (error == 0)
            return finish(g, pointers, &f);
        if (count == 0)
            return CRT_OK;
        if ((uint32_t)error != f.step)
            return CRT_ERR_ROWS;
        at = counters(g)[f.step - 1u]++ % f.rows->ring;
        crt_copy((uint8_t *)g->base[f.rows->buffer] + f.rows->at +
                     (size_t)at * f.rows->row_bytes,
                 from, bytes);
        from += bytes;
        count--;
    }
}

int crt_graph_rows_left(const struct crt_graph *g, uint32_t input)
{
    struct feed f;
    int error = find(g, input, &f);

    return error != CRT_OK ? error : (int)(f.rows->rows - done(g, &f));
}

int crt_graph_rows_wanted(const struct crt_graph *g, uint32_t input)
{
    const struct crt_link *link;
    struct feed f;
    int32_t wanted = 0;
    int error = find(g, input, &f);

    if (error != CRT_OK)
        return error;
    for (link = &g->model->links[f.stage->link]; link->reader != 0; link++) {
        int32_t rows = link->ahead;

        if (link->maker != f.step)
            continue;
        if (g->stage == PUSHING)
            rows += (int32_t)counters(g)[link->reader - 1u] * link->stride;
        if (rows > link->rows)
            rows = link->rows;
        rows -= (int32_t)done(g, &f);
        if (rows > 0 && (wanted == 0 || rows < wanted))
            wanted = rows;
    }
    return (int)wanted;
}

int crt_graph_pushed(const struct crt_graph *g)
{
    if (!crt_is_ready(g))
        return CRT_ERR_NULL;
    return g->valid ? CRT_OK : CRT_ERR_INPUT_MISSING;
}
