/* graph.c: instances of models: memory, inputs and outputs.
 * Knows nothing of running (run.c) and of parameters (weights.c). The const
 * tables are trusted, what the caller passes is not. */
#include "crt/slots.h"

const uint32_t crt_abi_9 = CRT_ABI;

/* Whether there is such an input, or output. */
static int check(const struct crt_graph *g, uint32_t index, int is_output)
{
    const struct crt_model *model;
    uint32_t count;

    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    model = g->model;
    count = is_output != 0 ? model->output_count : model->input_count;
    return index < count ? CRT_OK : CRT_ERR_INDEX;
}

static const struct crt_tensor *input_of(const struct crt_graph *g,
                                         uint32_t index)
{
    return &g->model->tensors[index];
}

static const struct crt_tensor *output_of(const struct crt_graph *g,
                                          uint32_t index)
{
    return &g->model->tensors[g->model->input_count + index];
}

/* Marks an input as given; what shared its memory is gone. */
static void *give(struct crt_graph *g, uint32_t input)
{
    g->fresh[input / 32u] |= crt_fresh_bit(input);
    crt_stop(g);
    if (crt_is_home(g, input, CRT_TENSOR_CONSUMED) != 0) {
        g->valid = 0;
    }
    return *crt_slot(g, input);
}

/* Points a tensor at the caller's memory, or home for NULL. */
static int bind(struct crt_graph *g, uint32_t t, void *data, uint32_t bytes)
{
    const struct crt_tensor *tensor = &g->model->tensors[t];

    if (data == NULL) {
        data = crt_home(g, tensor);
        g->ready = 0;
    } else {
        if (bytes != tensor->bytes) {
            return CRT_ERR_SIZE;
        }
        if (!crt_is_aligned(data, tensor->align)) {
            return CRT_ERR_ALIGN;
        }
        if (crt_check_place(g, t, data, bytes) != CRT_OK) {
            return CRT_ERR_OVERLAP;
        }
    }
    *crt_slot(g, t) = data;
    crt_stop(g);
    return CRT_OK;
}

/* ---- life ---------------------------------------------------------------- */

/* Takes over the caller's memory, all of which must be as the model needs it.
 */
static int take_regions(const struct crt_model *model, void **base,
                        const struct crt_region *regions, uint32_t count)
{
    uint32_t i;

    if (count != model->region_count) {
        return CRT_ERR_REGION;
    }
    for (i = 0; i < count; i++) {
        if (regions[i].ptr == NULL) {
            return CRT_ERR_NULL;
        }
        if (regions[i].bytes < model->region_bytes[i]) {
            return CRT_ERR_REGION;
        }
        if (!crt_is_aligned(regions[i].ptr, model->region_align)) {
            return CRT_ERR_ALIGN;
        }
        base[i] = regions[i].ptr;
    }
    return CRT_OK;
}

int crt_graph_init(struct crt_graph *g, const struct crt_model *model,
                   void **base, uint32_t *fresh,
                   const struct crt_region *regions, uint32_t count)
{
    uint32_t homes;
    uint32_t end;
    uint32_t i;
    int error;

    if (g == NULL) {
        return CRT_ERR_NULL;
    }
    g->model = NULL;
    if (model == NULL || base == NULL || fresh == NULL || regions == NULL) {
        return CRT_ERR_NULL;
    }
    if (model->abi != (uint32_t)CRT_ABI) {
        return CRT_ERR_ABI;
    }
    error = take_regions(model, base, regions, count);
    if (error != CRT_OK) {
        return error;
    }
    g->model = model;
    g->base = base;
    g->fresh = fresh;
    g->turn = NULL;
    g->stage = 0;
    g->ready = 0;
#ifndef CRT_NO_HOOK
    g->hook = NULL;
#endif
    homes = crt_first_parameter(model);
    end = homes + 2u * model->parameter_count;
    if (model->accelerator != NULL) {
        end++; /* the device table */
    }
    for (i = 0; i < end; i++) {
        *crt_slot(g, i) = i < homes ? crt_home(g, &model->tensors[i]) : NULL;
    }
    return crt_graph_reset(g);
}

int crt_graph_reset(struct crt_graph *g)
{
    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    crt_take_back_home(g, 0);
    crt_stop(g);
    if (g->model->state != NULL) {
        g->model->state->forget(g);
    }
    g->failed_step = -1;
    g->consumed = 0;
    g->valid = 0;
    return CRT_OK;
}

/* ---- memory that instances share ---------------------------------------- */

int crt_turn_init(struct crt_turn *turn)
{
#ifndef CRT_NO_OVERLAP
    uint32_t i;

#endif
    if (turn == NULL) {
        return CRT_ERR_NULL;
    }
    turn->owner = NULL;
    turn->running = 0;
    turn->wait = NULL;
    turn->context = NULL;
#ifndef CRT_NO_OVERLAP
    for (i = 0; i < (uint32_t)CRT_TURN_REGIONS; i++) {
        turn->memory[i].ptr = NULL;
        turn->memory[i].bytes = 0;
    }
#endif
    return CRT_OK;
}

int crt_turn_begin(struct crt_graph *g)
{
    struct crt_turn *turn = g->turn;

    crt_stop(g);
    if (turn == NULL) {
        return CRT_OK;
    }
    while (crt_raise_flag(&turn->running) != 0) {
        if (turn->wait == NULL || turn->wait(turn, 1) != 0) {
            return CRT_ERR_BUSY;
        }
    }
    if (turn->owner != g) {
        (void)crt_graph_reset(g); /* what g had is gone */
    }
    return CRT_OK;
}

void crt_turn_leave(const struct crt_graph *g)
{
    struct crt_turn *turn = g->turn;

    if (turn == NULL) {
        return;
    }
    crt_lower_flag(&turn->running);
    if (turn->wait != NULL) {
        (void)turn->wait(turn, 0);
    }
}

void crt_turn_end(const struct crt_graph *g)
{
    if (g->turn != NULL) {
        g->turn->owner = g;
    }
    crt_turn_leave(g);
}

void crt_stop(struct crt_graph *g)
{
    if (g->stage != 0u) {
        crt_turn_end(g);
    }
    g->stage = 0;
}

int crt_graph_share_storage(struct crt_graph *g, struct crt_turn *turn)
{
    if (crt_is_ready(g) && g->model->state != NULL && turn != NULL) {
        return CRT_ERR_STATE;
    }
    if (crt_graph_reset(g) != CRT_OK) {
        return CRT_ERR_NULL;
    }
    return crt_turn_join(g, turn);
}

/* ---- what is missing ----------------------------------------------------- */

static const struct crt_tensor *find_unbound(const struct crt_graph *g)
{
    uint32_t end = crt_first_parameter(g->model) + g->model->parameter_count;
    uint32_t i;

    for (i = 0; i < end; i++) {
        if (*crt_slot(g, i) == NULL) {
            return &g->model->tensors[i];
        }
    }
    return NULL;
}

const struct crt_tensor *crt_find_not_given(const struct crt_graph *g)
{
    uint32_t i;

    for (i = 0; i < g->model->input_count; i++) {
        if ((g->fresh[i / 32u] & crt_fresh_bit(i)) == 0u) {
            return input_of(g, i);
        }
    }
    return NULL;
}

const struct crt_tensor *crt_graph_missing(const struct crt_graph *g)
{
    const struct crt_tensor *found;

    if (!crt_is_ready(g)) {
        return NULL;
    }
    found = find_unbound(g);
    return found != NULL ? found : crt_find_not_given(g);
}

int crt_graph_setup(struct crt_graph *g)
{
    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    if (!crt_has_devices(g)) {
        return CRT_ERR_DEVICE;
    }
    if (find_unbound(g) != NULL) {
        return CRT_ERR_UNBOUND;
    }
    g->ready = 1;
    return CRT_OK;
}

/* ---- inputs and outputs -------------------------------------------------- */

int crt_fill(struct crt_graph *g, const struct crt_tensor *tensor, void *home,
             const void *data)
{
    if ((tensor->flags & CRT_TENSOR_CONVERTED) != 0u) {
        return g->model->convert(g, tensor, data);
    }
    if (crt_is_remote(g, tensor) != 0) {
        return g->model->accelerator->copy_in(g, tensor, data);
    }
    crt_copy(home, data, tensor->bytes);
    return CRT_OK;
}

int crt_graph_set_input(struct crt_graph *g, uint32_t index, const void *data,
                        uint32_t bytes)
{
    const struct crt_tensor *tensor;
    void *home;
    int error = check(g, index, 0);

    if (error != CRT_OK) {
        return error;
    }
    tensor = input_of(g, index);
    if (data == NULL) {
        return CRT_ERR_NULL;
    }
    if (bytes != tensor->bytes) {
        return CRT_ERR_SIZE;
    }
    if ((tensor->flags & CRT_TENSOR_LAZY) != 0u) {
        return CRT_ERR_LAZY;
    }
    error = crt_turn_begin(g);
    if (error != CRT_OK) {
        return error;
    }
    *crt_slot(g, index) = crt_place(g, tensor);
    home = give(g, index);
    error = crt_fill(g, tensor, home, data);
    if (error != CRT_OK) {
        crt_take_back(g, index);
    }
    crt_turn_end(g);
    return error;
}

int crt_graph_bind_input(struct crt_graph *g, uint32_t index, const void *data,
                         uint32_t bytes)
{
    int error = check(g, index, 0);

    if (error == CRT_OK) {
        error = bind(g, index, crt_unconst(data), bytes);
    }
    if (error != CRT_OK) {
        return error;
    }
    if (data == NULL) {
        crt_take_back(g, index);
    } else {
        (void)give(g, index);
    }
    return CRT_OK;
}

void *crt_graph_input(struct crt_graph *g, uint32_t index)
{
    const struct crt_tensor *tensor;

    if (check(g, index, 0) != CRT_OK) {
        return NULL;
    }
    tensor = input_of(g, index);
    if (*crt_slot(g, index) == NULL || crt_is_remote(g, tensor) ||
        crt_is_home(g, index, CRT_TENSOR_CONVERTED) != 0) {
        return NULL;
    }
    if (crt_turn_begin(g) != CRT_OK) {
        return NULL;
    }
    crt_turn_end(g);
    return give(g, index);
}

int crt_graph_bind_output(struct crt_graph *g, uint32_t index, void *data,
                          uint32_t bytes)
{
    int error = check(g, index, 1);

    if (error == CRT_OK) {
        error = bind(g, g->model->input_count + index, data, bytes);
    }
    if (error == CRT_OK) {
        g->valid = 0;
    }
    return error;
}

const void *crt_graph_output(const struct crt_graph *g, uint32_t index)
{
    if (check(g, index, 1) != CRT_OK || crt_is_remote(g, output_of(g, index))) {
        return NULL;
    }
    return *crt_slot(g, g->model->input_count + index);
}

int crt_graph_get_output(const struct crt_graph *g, uint32_t index, void *data,
                         uint32_t bytes)
{
    const struct crt_tensor *tensor;
    const void *from;
    int error = check(g, index, 1);

    if (error != CRT_OK) {
        return error;
    }
    tensor = output_of(g, index);
    if (data == NULL) {
        return CRT_ERR_NULL;
    }
    if (bytes != tensor->bytes) {
        return CRT_ERR_SIZE;
    }
    if (!g->valid) {
        return CRT_ERR_NO_OUTPUT;
    }
    error = crt_turn_begin((struct crt_graph *)crt_unconst(g));
    if (error != CRT_OK) {
        return error;
    }
    from = *crt_slot(g, g->model->input_count + index);
    if (!g->valid) { /* another had the memory since */
        error = CRT_ERR_NO_OUTPUT;
    } else if (crt_is_remote(g, tensor) != 0) {
        error = g->model->accelerator->copy_out(g, tensor, data, from);
    } else {
        crt_copy(data, from, bytes);
    }
    crt_turn_leave(g);
    return error;
}

/* ---- what there is ------------------------------------------------------- */

int crt_graph_input_count(const struct crt_graph *g)
{
    return crt_is_ready(g) ? (int)g->model->input_count : CRT_ERR_NULL;
}

int crt_graph_output_count(const struct crt_graph *g)
{
    return crt_is_ready(g) ? (int)g->model->output_count : CRT_ERR_NULL;
}

const struct crt_tensor *crt_graph_input_info(const struct crt_graph *g,
                                              uint32_t index)
{
    return check(g, index, 0) == CRT_OK ? input_of(g, index) : NULL;
}

const struct crt_tensor *crt_graph_output_info(const struct crt_graph *g,
                                               uint32_t index)
{
    return check(g, index, 1) == CRT_OK ? output_of(g, index) : NULL;
}

static int is_same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

int crt_find_tensor(const struct crt_model *model, uint32_t first,
                    uint32_t count, const char *name)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        const char *there = model->tensors[first + i].name;

        if (there != NULL && is_same(there, name)) { /* NULL: built with ids */
            return (int)i;
        }
    }
    return CRT_ERR_NAME;
}

int crt_graph_find_input(const struct crt_graph *g, const char *name)
{
    if (!crt_is_ready(g) || name == NULL) {
        return CRT_ERR_NULL;
    }
    return crt_find_tensor(g->model, 0, g->model->input_count, name);
}

int crt_graph_find_output(const struct crt_graph *g, const char *name)
{
    if (!crt_is_ready(g) || name == NULL) {
        return CRT_ERR_NULL;
    }
    return crt_find_tensor(g->model, g->model->input_count,
                           g->model->output_count, name);
}
