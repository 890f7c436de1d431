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
    if (!crt_is_ready(g))
        return CRT_ERR_NULL;
    return index < g->model->parameter_count ? CRT_OK : CRT_ERR_INDEX;
}

int crt_graph_parameter_count(const struct crt_graph *g)
{
    return crt_is_ready(g) ? g->model->parameter_count : CRT_ERR_NULL;
}

int crt_graph_find_parameter(const struct crt_graph *g, const char *name)
{
    if (!crt_is_ready(g) || name == NULL)
        return CRT_ERR_NULL;
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

/* ---- binding ---------------------------------------------------------------
 */

/* Points a slot at bytes that fit; one with a home on a device gets a copy. */
static int attach(struct crt_graph *g, uint32_t index, void *data,
                  struct crt_params *from)
{
    const struct crt_tensor *tensor = parameter_of(g, index);
    struct crt_params *before = (struct crt_params *)*crt_source(g, index);
    void *home = crt_home(g, tensor);

    if (data != NULL && home != NULL && data != home) {
        int error = CRT_OK;

        if (crt_is_remote(g, tensor))
            error = g->model->accelerator->copy_in(g, tensor, home, data);
        else
            crt_copy(home, data, tensor->bytes);
        if (error != CRT_OK)
            return error;
        data = home;
    }
    if (from != NULL)
        from->users++;
    if (before != NULL)
        before->users--;
    *slot_of(g, index) = data;
    *crt_source(g, index) = from;
    crt_stop(g);
    if (data == NULL)
        g->ready = 0;
    return CRT_OK;
}

static int check_same(const struct crt_tensor *tensor, uint32_t dtype,
                      uint32_t rank, const int32_t *dims)
{
    uint32_t i;

    if (tensor->dtype != dtype)
        return CRT_ERR_DTYPE;
    if (tensor->rank != rank)
        return CRT_ERR_SHAPE;
    for (i = 0; i < rank; i++) {
        if (tensor->dims[i] != dims[i])
            return CRT_ERR_SHAPE;
    }
    return CRT_OK;
}

/* Whether a parameter of an image can be used in place. */
static int check_fit(const struct crt_graph *g, uint32_t index,
                     const struct crt_param *found)
{
    const struct crt_tensor *tensor = parameter_of(g, index);
    int error = check_same(tensor, found->dtype, found->rank, found->dims);

    if (error != CRT_OK)
        return error;
    if (g->model->layouts[index] != found->layout)
        return CRT_ERR_LAYOUT;
    if (found->bytes != tensor->bytes)
        return CRT_ERR_SIZE;
    if (found->codec != CRT_CODEC_NONE)
        return CRT_ERR_CODEC;
    if (!crt_is_aligned(found->data, tensor->align))
        return CRT_ERR_ALIGN;
    return CRT_OK;
}

/* Writes a number before `end`; where it begins. */
static const char *decimal(uint32_t number, char *end)
{
    *--end = '\0';
    do {
        *--end = (char)('0' + number % 10u);
        number /= 10u;
    } while (number != 0);
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

    if (name == NULL)
        name = decimal(index, digits + sizeof digits);
    at = crt_params_find(params, name);
    return at < 0 ? at : crt_params_get(params, (uint32_t)at, found);
}

int crt_graph_load_params(struct crt_graph *g, struct crt_params *params)
{
    struct crt_param found;
    uint32_t i;
    int error;

    if (!crt_is_ready(g) || params == NULL)
        return CRT_ERR_NULL;
    if (!crt_has_devices(g))
        return CRT_ERR_DEVICE;
    for (i = 0; i < g->model->parameter_count; i++) {
        if (look_up(g, i, params, &found) != CRT_OK)
            continue;
        error = check_fit(g, i, &found);
        if (error != CRT_OK)
            return error;
    }
    for (i = 0; i < g->model->parameter_count; i++) {
        if (look_up(g, i, params, &found) != CRT_OK)
            continue;
        error = attach(g, i, (void *)found.data, params);
        if (error != CRT_OK)
            return error;
    }
    return CRT_OK;
}

int crt_graph_bind_parameter(struct crt_graph *g, uint32_t index,
                             const void *data, uint32_t bytes)
{
    int error = check_index(g, index);

    if (error != CRT_OK)
        return error;
    if (data != NULL) {
        if (bytes != parameter_of(g, index)->bytes)
            return CRT_ERR_SIZE;
        if (!crt_is_aligned(data, parameter_of(g, index)->align))
            return CRT_ERR_ALIGN;
        if (!crt_has_devices(g))
            return CRT_ERR_DEVICE;
    }
    return attach(g, index, (void *)data, NULL);
}

/* ---- sharing ---------------------------------------------------------------
 */

/* The content hash of what a parameter is bound to, 0: not known. */
static uint64_t content_of(const struct crt_graph *g, uint32_t index)
{
    const struct crt_params *from =
        (const struct crt_params *)*crt_source(g, index);
    struct crt_param found;

    if (from == NULL || look_up(g, index, from, &found) != CRT_OK)
        return 0;
    return found.content;
}

static int check_share(const struct crt_graph *g, uint32_t index,
                       const struct crt_graph *donor, uint32_t donor_index)
{
    const struct crt_tensor *theirs = parameter_of(donor, donor_index);
    const struct crt_tensor *mine = parameter_of(g, index);
    uint64_t want = content_of(g, index);
    uint64_t have = content_of(donor, donor_index);
    int error;

    if (*slot_of(donor, donor_index) == NULL)
        return CRT_ERR_UNBOUND;
    error = check_same(mine, theirs->dtype, theirs->rank, theirs->dims);
    if (error != CRT_OK)
        return error;
    if (g->model->layouts[index] != donor->model->layouts[donor_index])
        return CRT_ERR_LAYOUT;
    if (!crt_is_aligned(*slot_of(donor, donor_index), mine->align))
        return CRT_ERR_ALIGN;
    return want != 0 && have != 0 && want != have ? CRT_ERR_CONTENT : CRT_OK;
}

/* A sharer on a device reads the donor's copy there: it makes none. */
static void share(struct crt_graph *g, uint32_t index,
                  const struct crt_graph *donor, uint32_t donor_index)
{
    struct crt_params *from =
        (struct crt_params *)*crt_source(donor, donor_index);
    struct crt_params *before = (struct crt_params *)*crt_source(g, index);

    if (from != NULL)
        from->users++;
    if (before != NULL)
        before->users--;
    *slot_of(g, index) = *slot_of(donor, donor_index);
    *crt_source(g, index) = from;
    crt_stop(g);
}

int crt_graph_share_parameter(struct crt_graph *g, uint32_t index,
                              const struct crt_graph *donor,
                              uint32_t donor_index)
{
    int error = check_index(g, index);

    if (error == CRT_OK)
        error = check_index(donor, donor_index);
    if (error == CRT_OK)
        error = check_share(g, index, donor, donor_index);
    if (error == CRT_OK)
        share(g, index, donor, donor_index);
    return error;
}

/* The donor's parameter for one of g, and whether it can be shared.
 *
 * Errors  CRT_ERR_NAME: not asked for, so nothing to do if what is given */
static int check_named(const struct crt_graph *g, uint32_t index,
                       const struct crt_graph *donor,
                       const struct crt_params *what, uint32_t *there)
{
    const char *name = parameter_of(g, index)->name;
    struct crt_param asked;
    uint64_t have;
    int at = (int)index;

    if (what != NULL && look_up(g, index, what, &asked) != CRT_OK)
        return CRT_OK;
    if (g->model != donor->model)
        at =
            name == NULL ? CRT_ERR_NAME : crt_graph_find_parameter(donor, name);
    if (at < 0)
        return CRT_ERR_NAME;
    *there = (uint32_t)at;
    have = content_of(donor, *there);
    if (what != NULL && have != 0 && have != asked.content)
        return CRT_ERR_CONTENT;
    return check_share(g, index, donor, *there);
}

int crt_graph_share_params(struct crt_graph *g, const struct crt_graph *donor,
                           const struct crt_params *what)
{
    uint32_t pass;
    uint32_t i;

    if (!crt_is_ready(g) || !crt_is_ready(donor))
        return CRT_ERR_NULL;
    for (pass = 0; pass < 2; pass++) { /* all is checked before any is shared */
        for (i = 0; i < g->model->parameter_count; i++) {
            uint32_t there = UINT32_MAX;
            int error = check_named(g, i, donor, what, &there);

            if (error != CRT_OK)
                return error;
            if (pass == 1 && there != UINT32_MAX)
                share(g, i, donor, there);
        }
    }
    return CRT_OK;
}

int crt_graph_release_params(struct crt_graph *g)
{
    uint32_t i;

    if (!crt_is_ready(g))
        return CRT_ERR_NULL;
    for (i = 0; i < g->model->parameter_count; i++)
        attach(g, i, NULL, NULL);
    return CRT_OK;
}

int crt_params_close(struct crt_params *p)
{
    if (p == NULL)
        return CRT_ERR_NULL;
    if (p->users != 0)
        return CRT_ERR_IN_USE;
    p->image = NULL;
    p->unpacked = NULL;
    p->count = 0;
    p->plan = 0;
    p->content = 0;
    return CRT_OK;
}
