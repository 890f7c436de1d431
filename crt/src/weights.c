/* weights.c: parameters of instances: bound, shared, counted, released.
 * Knows the image format by crt/params.h only. */
#include "crt/weights.h"
#include "crt/slots.h"

static const struct crt_tensor *parameter_of(const struct crt_graph *g,
                                             uint32_t index)
{
    return &g->model->tensors[crt_first_parameter(g->model) + index];
}

static void **slot_of(const struct crt_graph *g, uint32_t index)
{
    return crt_slot(g, crt_first_parameter(g->model) + index);
}

static int check_index(const struct crt_graph *g, uint32_t index)
{
    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    return index < g->model->parameter_count ? CRT_OK : CRT_ERR_INDEX;
}

int crt_graph_parameter_count(const struct crt_graph *g)
{
    return crt_is_ready(g) ? g->model->parameter_count : CRT_ERR_NULL;
}

int crt_graph_find_parameter(const struct crt_graph *g, const char *name)
{
    if (!crt_is_ready(g) || name == NULL) {
        return CRT_ERR_NULL;
    }
    return crt_find_tensor(g->model, crt_first_parameter(g->model),
                           g->model->parameter_count, name);
}

const struct crt_tensor *crt_graph_parameter_info(const struct crt_graph *g,
                                                  uint32_t index)
{
    return check_index(g, index) == CRT_OK ? parameter_of(g, index) : NULL;
}

const void *crt_graph_parameter(const struct crt_graph *g, uint32_t index)
{
    return check_index(g, index) == CRT_OK ? *slot_of(g, index) : NULL;
}

/* ---- binding ------------------------------------------------------------- */

/* Points a slot at bytes that fit, and counts. One with a home gets a copy of
 * them there, unless that is where they are; it is unbound if that fails. */
static int attach(struct crt_graph *g, uint32_t index, const void *data,
                  struct crt_params *from)
{
    const struct crt_tensor *tensor = parameter_of(g, index);
    struct crt_params *before = (struct crt_params *)*crt_source(g, index);
    void *home = crt_home(g, tensor);
    int error = CRT_OK;

    if (data != NULL && home != NULL && data != home) {
        error = crt_fill(g, tensor, home, data);
        data = error == CRT_OK ? home : NULL;
    }
    if (data == NULL) {
        from = NULL;
        g->ready = 0;
    }
    if (from != NULL) {
        from->users++;
    }
    if (before != NULL && before->users != 0u) { /* 0: opened anew since */
        before->users--;
    }
    *slot_of(g, index) = crt_unconst(data);
    *crt_source(g, index) = from;
    crt_stop(g);
    return error;
}

/* Whether g can use bytes that are arranged as `found` says. */
static int check_fit(const struct crt_graph *g, uint32_t index,
                     const struct crt_param *found)
{
    const struct crt_tensor *tensor = parameter_of(g, index);
    uint32_t i;

    if (found->dtype != tensor->dtype) {
        return CRT_ERR_DTYPE;
    }
    if (found->rank != tensor->rank) {
        return CRT_ERR_SHAPE;
    }
    for (i = 0; i < tensor->rank; i++) {
        if (found->dims[i] != tensor->dims[i]) {
            return CRT_ERR_SHAPE;
        }
    }
    if (found->layout != g->model->layouts[index]) {
        return CRT_ERR_LAYOUT;
    }
    if (found->bytes != tensor->bytes) {
        return CRT_ERR_SIZE;
    }
    if (found->codec != (uint32_t)CRT_CODEC_NONE) {
        return CRT_ERR_CODEC;
    }
    if (!crt_is_aligned(found->data, tensor->align)) {
        return CRT_ERR_ALIGN;
    }
    return crt_check_place(g, crt_first_parameter(g->model) + index,
                           found->data, found->bytes);
}

/* Writes a number before `end`; where it begins. */
static const char *decimal(uint32_t number, char *end)
{
    *--end = '\0';
    do {
        *--end = (char)('0' + number % 10u);
        number /= 10u;
    } while (number != 0u);
    return end;
}

/* The parameter of an image with the name of g's, or its number where the model
 * was built without names; CRT_ERR_NAME: has none. */
static int look_up(const struct crt_graph *g, uint32_t index,
                   const struct crt_params *params, struct crt_param *found)
{
    char digits[11];
    const char *name = parameter_of(g, index)->name;
    int at;

    if (name == NULL) {
        name = decimal(index, digits + sizeof digits);
    }
    at = crt_params_find(params, name);
    return at < 0 ? at : crt_params_get(params, (uint32_t)at, found);
}

int crt_graph_load_params(struct crt_graph *g, struct crt_params *params)
{
    struct crt_param found;
    uint32_t i;
    int error = CRT_ERR_NAME;

    if (!crt_is_ready(g) || params == NULL || params->image == NULL) {
        return CRT_ERR_NULL;
    }
    if (!crt_has_devices(g)) {
        return CRT_ERR_DEVICE;
    }
    for (i = 0; i < g->model->parameter_count; i++) {
        if (look_up(g, i, params, &found) != CRT_OK) {
            continue;
        }
        error = check_fit(g, i, &found);
        if (error != CRT_OK) {
            return error;
        }
    }
    if (error != CRT_OK) {
        return error; /* it has none of the model's */
    }
    for (i = 0; i < g->model->parameter_count; i++) {
        if (look_up(g, i, params, &found) != CRT_OK) {
            continue;
        }
        error = attach(g, i, found.data, params);
        if (error != CRT_OK) {
            return error;
        }
    }
    return CRT_OK;
}

int crt_graph_bind_parameter(struct crt_graph *g, uint32_t index,
                             const void *data, uint32_t bytes)
{
    int error = check_index(g, index);

    if (error != CRT_OK) {
        return error;
    }
    if (data != NULL) {
        if (bytes != parameter_of(g, index)->bytes) {
            return CRT_ERR_SIZE;
        }
        if (!crt_is_aligned(data, parameter_of(g, index)->align)) {
            return CRT_ERR_ALIGN;
        }
        if (!crt_has_devices(g)) {
            return CRT_ERR_DEVICE;
        }
        error = crt_check_place(g, crt_first_parameter(g->model) + index, data,
                                bytes);
        if (error != CRT_OK) {
            return error;
        }
    }
    return attach(g, index, data, NULL);
}

/* ---- sharing ------------------------------------------------------------- */

/* What a parameter is bound to, as an image would say it, and which image that
 * is; content 0: in none. */
static struct crt_params *describe(const struct crt_graph *g, uint32_t index,
                                   struct crt_param *found)
{
    const struct crt_tensor *tensor = parameter_of(g, index);
    struct crt_params *from = (struct crt_params *)*crt_source(g, index);

    if (from != NULL && look_up(g, index, from, found) == CRT_OK) {
        return from;
    }
    found->content = 0;
    found->dims = tensor->dims;
    found->data = crt_is_remote(g, tensor) ? NULL : *slot_of(g, index);
    found->bytes = tensor->bytes;
    found->layout = g->model->layouts[index];
    found->codec = CRT_CODEC_NONE;
    found->dtype = tensor->dtype;
    found->rank = tensor->rank;
    return from;
}

static int check_share(const struct crt_graph *g, uint32_t index,
                       const struct crt_graph *donor, uint32_t donor_index)
{
    struct crt_param theirs;

    (void)describe(donor, donor_index, &theirs);
    if (theirs.data == NULL) { /* as where the donor has none */
        return CRT_ERR_UNBOUND;
    }
    return check_fit(g, index, &theirs);
}

static int share(struct crt_graph *g, uint32_t index,
                 const struct crt_graph *donor, uint32_t donor_index)
{
    struct crt_param theirs;
    struct crt_params *from = describe(donor, donor_index, &theirs);
    const void *there = *slot_of(donor, donor_index);

    if (there != crt_home(g, parameter_of(g, index))) {
        there = theirs.data; /* not in the donor's home, which may go */
    }
    return attach(g, index, there, from);
}

int crt_graph_share_parameter(struct crt_graph *g, uint32_t index,
                              const struct crt_graph *donor,
                              uint32_t donor_index)
{
    int error = check_index(g, index);

    if (error == CRT_OK) {
        error = check_index(donor, donor_index);
    }
    if (error == CRT_OK && !crt_has_devices(g)) {
        error = CRT_ERR_DEVICE;
    }
    if (error == CRT_OK) {
        error = check_share(g, index, donor, donor_index);
    }
    if (error == CRT_OK) {
        error = share(g, index, donor, donor_index);
    }
    return error;
}

/* Whether bytes are not those that were asked for; 0: it is not known. */
static int is_other(uint64_t want, uint64_t have)
{
    return want != 0u && have != 0u && want != have;
}

/* The donor's index of a parameter of g's, checked. CRT_ERR_NAME from `what`
 * is not an error: it is not asked for, and `there` is left. */
static int check_named(const struct crt_graph *g, uint32_t index,
                       const struct crt_graph *donor,
                       const struct crt_params *what, uint32_t *there)
{
    const char *name = parameter_of(g, index)->name;
    struct crt_param asked;
    struct crt_param theirs;
    int at = (int)index;

    if (what != NULL && look_up(g, index, what, &asked) != CRT_OK) {
        return CRT_OK;
    }
    if (g->model != donor->model) {
        at = crt_graph_find_parameter(donor, name);
    }
    if (at < 0) {
        return CRT_ERR_NAME;
    }
    *there = (uint32_t)at;
    (void)describe(donor, *there, &theirs);
    if (what != NULL && is_other(asked.content, theirs.content)) {
        return CRT_ERR_CONTENT;
    }
    return check_share(g, index, donor, *there);
}

int crt_graph_share_params(struct crt_graph *g, const struct crt_graph *donor,
                           const struct crt_params *what)
{
    uint32_t asked = 0;
    uint32_t pass;
    uint32_t i;

    if (!crt_is_ready(g) || !crt_is_ready(donor)) {
        return CRT_ERR_NULL;
    }
    if (what != NULL && what->image == NULL) {
        return CRT_ERR_NULL;
    }
    if (!crt_has_devices(g)) {
        return CRT_ERR_DEVICE;
    }
    /* all is checked before any is shared */
    for (pass = 0; pass < 2u; pass++) {
        for (i = 0; i < g->model->parameter_count; i++) {
            uint32_t there = UINT32_MAX;
            int error = check_named(g, i, donor, what, &there);

            asked += there != UINT32_MAX ? 1u : 0u;
            if (error == CRT_OK && pass == 1u && there != UINT32_MAX) {
                error = share(g, i, donor, there);
            }
            if (error != CRT_OK) {
                return error;
            }
        }
    }
    return what == NULL || asked != 0u ? CRT_OK : CRT_ERR_NAME;
}

int crt_graph_release_params(struct crt_graph *g)
{
    uint32_t i;

    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    for (i = 0; i < g->model->parameter_count; i++) {
        (void)attach(g, i, NULL, NULL);
    }
    return CRT_OK;
}

int crt_params_close(struct crt_params *p)
{
    if (p == NULL) {
        return CRT_ERR_NULL;
    }
    if (p->users != 0u) {
        return CRT_ERR_IN_USE;
    }
    p->image = NULL;
    p->unpacked = NULL;
    p->count = 0;
    p->plan = 0;
    p->content = 0;
    return CRT_OK;
}
