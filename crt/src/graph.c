/* graph.c: instances of models, and the runner of the step tables.
 * Knows no operator: a step is a kernel and the rows that it reads and
 * writes. The const tables are trusted, what the caller passes is not. */
#include "crt/graph.h"
#include "crt/port.h"

const uint32_t crt_abi_1 = CRT_ABI;

/* ---- tensors: inputs, then outputs, in one numbering ------------------- */

static int is_ready(const struct crt_graph *g)
{
    return g != NULL && g->model != NULL;
}

static const struct crt_tensor *tensor_of(const struct crt_graph *g, uint32_t t)
{
    return &g->model->tensors[t];
}

/* Where the base pointer of a tensor is kept. */
static void **slot_of(const struct crt_graph *g, uint32_t t)
{
    return &g->base[g->model->region_count + t];
}

static void *home_of(const struct crt_graph *g, uint32_t t)
{
    const struct crt_tensor *tensor = tensor_of(g, t);

    return (uint8_t *)g->base[tensor->region] + tensor->at;
}

static int is_aligned(const void *ptr, uint32_t align)
{
    return ((uintptr_t)ptr & (align - 1u)) == 0;
}

/* Whether a run uses the memory of this input up. A bound one is only read. */
static int is_consumable(const struct crt_graph *g, uint32_t input)
{
    return (tensor_of(g, input)->flags & CRT_TENSOR_CONSUMED) != 0 &&
           *slot_of(g, input) == home_of(g, input);
}

static uint32_t fresh_bit(uint32_t input)
{
    return (uint32_t)1 << (input % 32u);
}

static int check_input(const struct crt_graph *g, uint32_t index)
{
    if (!is_ready(g))
        return CRT_ERR_NULL;
    return index < g->model->input_count ? CRT_OK : CRT_ERR_INDEX;
}

static int check_output(const struct crt_graph *g, uint32_t index)
{
    if (!is_ready(g))
        return CRT_ERR_NULL;
    return index < g->model->output_count ? CRT_OK : CRT_ERR_INDEX;
}

/* Marks an input as given; what shared its memory is gone. */
static void *give(struct crt_graph *g, uint32_t input)
{
    g->fresh[input / 32u] |= fresh_bit(input);
    g->stage = 0;
    if (is_consumable(g, input))
        g->valid = 0;
    return *slot_of(g, input);
}

/* Points a tensor at the caller's memory, or home for NULL. */
static int bind(struct crt_graph *g, uint32_t t, void *data, uint32_t bytes)
{
    const struct crt_tensor *tensor = tensor_of(g, t);

    if (data == NULL) {
        data = home_of(g, t);
    } else {
        if (bytes != tensor->bytes)
            return CRT_ERR_SIZE;
        if (!is_aligned(data, tensor->align))
            return CRT_ERR_ALIGN;
    }
    *slot_of(g, t) = data;
    g->stage = 0;
    return CRT_OK;
}

/* ---- life ---------------------------------------------------------------- */

static int check_regions(const struct crt_model *model,
                         const struct crt_region *regions, uint32_t count)
{
    uint32_t i;

    if (count != model->region_count)
        return CRT_ERR_REGION;
    for (i = 0; i < count; i++) {
        if (regions[i].ptr == NULL)
            return CRT_ERR_NULL;
        if (regions[i].bytes < model->region_bytes[i])
            return CRT_ERR_REGION;
        if (!is_aligned(regions[i].ptr, model->region_align))
            return CRT_ERR_ALIGN;
    }
    return CRT_OK;
}

int crt_graph_init(struct crt_graph *g, const struct crt_model *model,
                   void **base, uint32_t *fresh,
                   const struct crt_region *regions, uint32_t count)
{
    uint32_t i;
    int error;

    if (g == NULL)
        return CRT_ERR_NULL;
    g->model = NULL;
    if (model == NULL || base == NULL || fresh == NULL || regions == NULL)
        return CRT_ERR_NULL;
    if (model->abi != CRT_ABI)
        return CRT_ERR_ABI;
    error = check_regions(model, regions, count);
    if (error != CRT_OK)
        return error;
    g->model = model;
    g->base = base;
    g->fresh = fresh;
#ifndef CRT_NO_HOOK
    g->hook = NULL;
#endif
    for (i = 0; i < count; i++)
        base[i] = regions[i].ptr;
    for (i = 0; i < (uint32_t)model->input_count + model->output_count; i++)
        *slot_of(g, i) = home_of(g, i);
    return crt_graph_reset(g);
}

int crt_graph_reset(struct crt_graph *g)
{
    uint32_t i;

    if (!is_ready(g))
        return CRT_ERR_NULL;
    for (i = 0; i < g->model->input_count; i++) {
        if (*slot_of(g, i) == home_of(g, i))
            g->fresh[i / 32u] &= ~fresh_bit(i);
    }
    g->failed_step = -1;
    g->stage = 0;
    g->consumed = 0;
    g->valid = 0;
    return CRT_OK;
}

/* ---- inputs and outputs -------------------------------------------------- */

int crt_graph_set_input(struct crt_graph *g, uint32_t index, const void *data,
                        uint32_t bytes)
{
    int error = check_input(g, index);

    if (error != CRT_OK)
        return error;
    if (data == NULL)
        return CRT_ERR_NULL;
    if (bytes != tensor_of(g, index)->bytes)
        return CRT_ERR_SIZE;
    *slot_of(g, index) = home_of(g, index);
    crt_copy(give(g, index), data, bytes);
    return CRT_OK;
}

int crt_graph_bind_input(struct crt_graph *g, uint32_t index, const void *data,
                         uint32_t bytes)
{
    int error = check_input(g, index);

    if (error == CRT_OK)
        error = bind(g, index, (void *)data, bytes);
    if (error != CRT_OK)
        return error;
    if (data == NULL)
        g->fresh[index / 32u] &= ~fresh_bit(index);
    else
        give(g, index);
    return CRT_OK;
}

void *crt_graph_input(struct crt_graph *g, uint32_t index)
{
    return check_input(g, index) == CRT_OK ? give(g, index) : NULL;
}

int crt_graph_bind_output(struct crt_graph *g, uint32_t index, void *data,
                          uint32_t bytes)
{
    int error = check_output(g, index);

    if (error == CRT_OK)
        error = bind(g, g->model->input_count + index, data, bytes);
    if (error == CRT_OK)
        g->valid = 0;
    return error;
}

const void *crt_graph_output(const struct crt_graph *g, uint32_t index)
{
    if (check_output(g, index) != CRT_OK)
        return NULL;
    return *slot_of(g, g->model->input_count + index);
}

int crt_graph_get_output(const struct crt_graph *g, uint32_t index, void *data,
                         uint32_t bytes)
{
    int error = check_output(g, index);

    if (error != CRT_OK)
        return error;
    if (data == NULL)
        return CRT_ERR_NULL;
    if (bytes != tensor_of(g, g->model->input_count + index)->bytes)
        return CRT_ERR_SIZE;
    if (!g->valid)
        return CRT_ERR_NO_OUTPUT;
    crt_copy(data, crt_graph_output(g, index), bytes);
    return CRT_OK;
}

/* ---- the runner ---------------------------------------------------------- */

/* Writes the window of row pointers of one operand to p; returns its end. */
static void **window_of(const struct crt_graph *g, void **p,
                        const struct crt_operand *o, uint32_t image,
                        uint32_t band)
{
    uint8_t *row0 = (uint8_t *)g->base[o->buffer] + o->at;
    uint32_t first = o->stride == 0 ? 0 : image * o->rows;
    uint32_t pad = (uint32_t)o->pad;
    uint32_t row = band * o->stride - pad;
    uint32_t end = row + o->window;

    for (; row != end; row++) { /* rows above row 0 are huge numbers here */
        if (row >= o->rows)
            *p++ = (void *)o->pad_row;
        else if (o->ring == o->rows)
            *p++ = row0 + (size_t)(first + row) * o->row_bytes;
        else
            *p++ = row0 + (size_t)(row % o->ring) * o->row_bytes;
    }
    return p;
}

#ifndef CRT_NO_HOOK
/* Tells the hook of the rows that a step has just written. */
static int report(struct crt_graph *g, void *const *p, uint32_t index,
                  uint32_t image, uint32_t band)
{
    const struct crt_operand *out = g->model->steps[index].operands;
    uint32_t row = band * out->stride;
    uint32_t left = out->rows - row;
    uint32_t count = out->window < left ? out->window : left;
    uint32_t piece = out->ring == out->rows ? count : 1u;
    uint32_t i;

    for (i = 0; i < count; i += piece) {
        if (g->hook(g->hook_context, index, image * out->rows + row + i, piece,
                    p[i]) != 0) {
            g->failed_step = (int16_t)index;
            return CRT_ERR_STOPPED;
        }
    }
    return CRT_OK;
}
#endif

/* Computes one band of one step. */
static int run_band(struct crt_graph *g, void **p, uint32_t index,
                    uint32_t image, uint32_t band)
{
    const struct crt_step *step = &g->model->steps[index];
    const struct crt_operand *operand = step->operands;
    void **end = p;
    uint32_t i;

    for (i = 0; i < (uint32_t)step->output_count + step->input_count; i++)
        end = window_of(g, end, operand++, image, band);
    for (i = 0; i < step->constant_count; i++)
        *end++ = (void *)step->constants[i];
    for (i = 0; i < step->scratch_count; i++)
        end = window_of(g, end, operand++, image, band);
    step->kernel(p, step->args);
#ifndef CRT_NO_HOOK
    if (g->hook != NULL)
        return report(g, p, index, image, band);
#endif
    return CRT_OK;
}

static int run_step(struct crt_graph *g, void **p, uint32_t index)
{
    const struct crt_step *step = &g->model->steps[index];
    uint32_t image;
    uint32_t band;
    int error = CRT_OK;

    for (image = 0; image < step->images; image++) {
        for (band = 0; band < step->bands && error == CRT_OK; band++)
            error = run_band(g, p, index, image, band);
    }
    return error;
}

/* Checks that all inputs are given; from then on their memory is used up. */
static int begin(struct crt_graph *g)
{
    uint32_t i;

    for (i = 0; i < g->model->input_count; i++) {
        if ((g->fresh[i / 32u] & fresh_bit(i)) == 0)
            return g->consumed ? CRT_ERR_INPUT_CONSUMED : CRT_ERR_INPUT_MISSING;
    }
    for (i = 0; i < g->model->input_count; i++) {
        if (is_consumable(g, i))
            g->fresh[i / 32u] &= ~fresh_bit(i);
    }
    g->consumed = 1;
    g->valid = 0;
    g->failed_step = -1;
    return CRT_OK;
}

int crt_graph_run_stage(struct crt_graph *g, void **pointers, uint32_t stage)
{
    const struct crt_stage *s;
    uint32_t i;
    int error = CRT_OK;

    if (!is_ready(g) || pointers == NULL)
        return CRT_ERR_NULL;
    if (stage >= g->model->stage_count)
        return CRT_ERR_INDEX;
    if (stage == 0)
        error = begin(g);
    else if (stage != g->stage)
        error = CRT_ERR_STAGE;
    g->stage = 0;
    s = &g->model->stages[stage];
    for (i = 0; i < s->count && error == CRT_OK; i++)
        error = run_step(g, pointers, s->first + i);
    if (error != CRT_OK)
        return error;
    if (stage + 1u == g->model->stage_count)
        g->valid = 1;
    else
        g->stage = (uint16_t)(stage + 1u);
    return CRT_OK;
}

int crt_graph_run(struct crt_graph *g, void **pointers)
{
    uint32_t stage = 0;
    int error;

    do {
        error = crt_graph_run_stage(g, pointers, stage++);
    } while (error == CRT_OK && stage < g->model->stage_count);
    return error;
}

#ifndef CRT_NO_HOOK
int crt_graph_set_hook(struct crt_graph *g, crt_hook *hook, void *context)
{
    if (!is_ready(g))
        return CRT_ERR_NULL;
    g->hook = hook;
    g->hook_context = context;
    return CRT_OK;
}
#endif

/* ---- what there is ------------------------------------------------------- */

int crt_graph_input_count(const struct crt_graph *g)
{
    return is_ready(g) ? g->model->input_count : CRT_ERR_NULL;
}

int crt_graph_output_count(const struct crt_graph *g)
{
    return is_ready(g) ? g->model->output_count : CRT_ERR_NULL;
}

const struct crt_tensor *crt_graph_input_info(const struct crt_graph *g,
                                              uint32_t index)
{
    return check_input(g, index) == CRT_OK ? tensor_of(g, index) : NULL;
}

const struct crt_tensor *crt_graph_output_info(const struct crt_graph *g,
                                               uint32_t index)
{
    if (check_output(g, index) != CRT_OK)
        return NULL;
    return tensor_of(g, g->model->input_count + index);
}

static int is_same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static int find(const struct crt_tensor *tensors, uint32_t count,
                const char *name)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        if (is_same(tensors[i].name, name))
            return (int)i;
    }
    return CRT_ERR_NAME;
}

int crt_graph_find_input(const struct crt_graph *g, const char *name)
{
    if (!is_ready(g) || name == NULL)
        return CRT_ERR_NULL;
    return find(g->model->tensors, g->model->input_count, name);
}

int crt_graph_find_output(const struct crt_graph *g, const char *name)
{
    if (!is_ready(g) || name == NULL)
        return CRT_ERR_NULL;
    return find(&g->model->tensors[g->model->input_count],
                g->model->output_count, name);
}
