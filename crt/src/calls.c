/* calls.c: what each call of the other side does: objects in the memory of the
 * server, tensors in and out, runs. Knows no frame and no session. Words and
 * data may be anything: every number is checked before it is used. */
#include "crt/calls.h"

#ifndef CRT_NO_RPC

#include "crt/slots.h"

/* An instance, at the start of its memory. */
struct instance {
    struct crt_graph graph;
    struct crt_rpc *server;
    void **pointers;
    uint32_t watch;  /* the buffer that rows are recorded in */
    uint32_t steps;  /* entries of the table in it: {at, bytes of a row} */
    uint32_t output; /* of each step; not 0: it is held whole, in one row */
};

enum {
    IMAGE_AT = 64, /* of an image in its buffer, behind a struct crt_params */
    WATCHED = 8    /* bytes of an entry of the table of a watch */
};

typedef char params_fit[sizeof(struct crt_params) <= IMAGE_AT ? 1 : -1];

/* ---- objects ------------------------------------------------------------- */

static struct instance *find_graph(struct crt_rpc *r, uint32_t number)
{
    const struct crt_rpc_object *o = crt_rpc_find(r, number, CRT_RPC_GRAPH);

    return o == NULL ? NULL : (struct instance *)crt_rpc_memory(r, o);
}

static int32_t release(struct crt_rpc *r, uint32_t number)
{
    struct crt_rpc_object *image = crt_rpc_find(r, number, CRT_RPC_IMAGE);
    struct instance *g = find_graph(r, number);
    int error = CRT_OK;

    if (number >= (uint32_t)CRT_RPC_OBJECTS ||
        r->objects[number].kind == (uint32_t)CRT_RPC_FREE) {
        return CRT_ERR_INDEX;
    }
    if (image != NULL) {
        error = crt_params_close((struct crt_params *)crt_rpc_memory(r, image));
    } else if (g != NULL) {
        error = crt_graph_release_params(&g->graph);
    } else {
        /* nothing is bound to a buffer */
    }
    if (error == CRT_OK) {
        r->objects[number].kind = CRT_RPC_FREE;
    }
    return error;
}

/* ---- bytes --------------------------------------------------------------- */

static int32_t give(struct crt_rpc *r, const void *from, uint32_t bytes)
{
    if (bytes > crt_rpc_answer_most(r)) {
        return CRT_ERR_SIZE;
    }
    crt_copy(crt_rpc_answer(r), from, bytes);
    r->reply_bytes = bytes;
    return CRT_OK;
}

static int32_t write(struct crt_rpc *r, const uint32_t *words,
                     const uint8_t *data, uint32_t bytes)
{
    const struct crt_rpc_object *o = crt_rpc_find(r, words[0], CRT_RPC_BUFFER);

    if (o == NULL) {
        return CRT_ERR_INDEX;
    }
    if (!crt_holds(o->bytes, words[1], bytes)) {
        return CRT_ERR_SIZE;
    }
    crt_copy((uint8_t *)crt_rpc_memory(r, o) + words[1], data, bytes);
    return CRT_OK;
}

static int32_t read(struct crt_rpc *r, const uint32_t *words)
{
    const struct crt_rpc_object *o = crt_rpc_find(r, words[0], CRT_RPC_BUFFER);

    if (o == NULL) {
        return CRT_ERR_INDEX;
    }
    if (!crt_holds(o->bytes, words[1], words[2])) {
        return CRT_ERR_SIZE;
    }
    return give(r, (const uint8_t *)crt_rpc_memory(r, o) + words[1], words[2]);
}

/* A buffer becomes a parameter image. */
static int32_t open(struct crt_rpc *r, const uint32_t *words)
{
    struct crt_rpc_object *o = crt_rpc_find(r, words[0], CRT_RPC_BUFFER);
    uint8_t *memory;
    int error;

    if (o == NULL) {
        return CRT_ERR_INDEX;
    }
    if (!crt_holds(o->bytes, IMAGE_AT, words[1])) {
        return CRT_ERR_SIZE;
    }
    memory = (uint8_t *)crt_rpc_memory(r, o);
    error = crt_params_verify((struct crt_params *)(void *)memory,
                              memory + IMAGE_AT, words[1]);
    if (error == CRT_OK) {
        o->kind = CRT_RPC_IMAGE;
    }
    return error;
}

/* ---- graphs -------------------------------------------------------------- */

/* Where the parts of an instance lie, from its start on. */
struct layout {
    uint32_t base;
    uint32_t pointers;
    uint32_t regions;
    uint32_t fresh;
    uint32_t arenas; /* each at a multiple of CRT_RPC_ALIGN */
    uint32_t given;  /* inputs that are converted, until all of it is there */
    uint32_t bytes;
};

/* Bytes for the first inputs, of those that are converted. */
static uint32_t given_bytes(const struct crt_model *m, uint32_t inputs)
{
    uint32_t bytes = 0;
    uint32_t i;

    for (i = 0; i < inputs; i++) {
        if ((m->tensors[i].flags & CRT_TENSOR_CONVERTED) != 0u) {
            bytes += crt_align_up(m->tensors[i].bytes, CRT_RPC_ALIGN);
        }
    }
    return bytes;
}

static struct layout layout_of(const struct crt_model *m)
{
    const uint32_t word = (uint32_t)sizeof(void *);
    struct layout l;
    uint32_t i;

    l.base = crt_align_up((uint32_t)sizeof(struct instance), CRT_RPC_ALIGN);
    /* MISRA 10.4: sizes of arrays are ints, as users write them */
    l.pointers = l.base + word * CRT_BASE_COUNT((uint32_t)m->region_count,
                                                (uint32_t)m->input_count,
                                                (uint32_t)m->output_count,
                                                (uint32_t)m->parameter_count,
                                                (uint32_t)m->device_count);
    l.regions =
        crt_align_up(l.pointers + word * m->pointer_count, CRT_RPC_ALIGN);
    l.fresh = l.regions + (uint32_t)sizeof(struct crt_region) * m->region_count;
    l.arenas = crt_align_up(l.fresh + 4u * CRT_FRESH_WORDS(m->input_count),
                            CRT_RPC_ALIGN);
    l.bytes = l.arenas;
    for (i = 0; i < m->region_count; i++) {
        l.bytes += crt_align_up(m->region_bytes[i], CRT_RPC_ALIGN);
    }
    l.given = l.bytes;
    l.bytes += given_bytes(m, m->input_count);
    return l;
}

static int32_t create(struct crt_rpc *r)
{
    const struct crt_model *m = r->config->model;
    const struct layout l = layout_of(m);
    const int32_t number = crt_rpc_allocate(r, l.bytes, CRT_RPC_GRAPH);
    uint32_t at = l.arenas;
    struct crt_region *regions;
    struct instance *g;
    uint8_t *start;
    uint32_t i;
    int error;

    if (number < 0) {
        return number;
    }
    start = (uint8_t *)crt_rpc_memory(r, &r->objects[number]);
    g = (struct instance *)(void *)start;
    g->server = r;
    g->pointers = (void **)(void *)(start + l.pointers);
    regions = (struct crt_region *)(void *)(start + l.regions);
    for (i = 0; i < m->region_count; i++) {
        regions[i].ptr = start + at;
        regions[i].bytes = m->region_bytes[i];
        at += crt_align_up(m->region_bytes[i], CRT_RPC_ALIGN);
    }
    error = crt_graph_init(&g->graph, m, (void **)(void *)(start + l.base),
                           (uint32_t *)(void *)(start + l.fresh), regions,
                           m->region_count);
    if (error == CRT_OK) {
        return number;
    }
    r->objects[number].kind = CRT_RPC_FREE;
    return error;
}

/* A piece of an input; it counts as given when the last one says so. */
static int32_t set(struct crt_graph *g, const uint32_t *words,
                   const uint8_t *data, uint32_t bytes)
{
    const struct crt_model *m = g->model;
    const uint32_t input = words[1];
    uint8_t *to;

    if (input >= m->input_count) {
        return CRT_ERR_INDEX;
    }
    if (!crt_holds(m->tensors[input].bytes, words[2], bytes)) {
        return CRT_ERR_SIZE;
    }
    (void)crt_graph_bind_input(g, input, NULL, 0); /* home */
    if ((m->tensors[input].flags & CRT_TENSOR_CONVERTED) != 0u) {
        to = (uint8_t *)(void *)g + layout_of(m).given + given_bytes(m, input);
        crt_copy(to + words[2], data, bytes);
        bytes = m->tensors[input].bytes;
        return words[3] == 0u ? CRT_OK
                              : crt_graph_set_input(g, input, to, bytes);
    }
    to = (uint8_t *)crt_graph_input(g, input);
    if (to == NULL) {
        return CRT_ERR_LAZY;
    }
    crt_copy(to + words[2], data, bytes);
    if (words[3] == 0u) {
        g->fresh[input / 32u] &= ~crt_fresh_bit(input);
    }
    return CRT_OK;
}

/* Where an input or output is, if it holds something. */
static const uint8_t *look(const struct crt_graph *g, uint32_t tensor,
                           int32_t *error)
{
    const void *there = NULL;

    *error = CRT_ERR_INDEX;
    if (tensor < crt_first_parameter(g->model)) {
        *error = CRT_ERR_UNBOUND;
        if (crt_is_home(g, tensor, CRT_TENSOR_CONVERTED) == 0) {
            there = *crt_slot(g, tensor);
        }
    }
    return (const uint8_t *)there;
}

static int32_t get(struct crt_rpc *r, const struct crt_graph *g,
                   const uint32_t *words)
{
    int32_t error;
    const uint8_t *from = look(g, words[1], &error);

    if (from == NULL) {
        return error;
    }
    if (words[1] >= g->model->input_count && !g->valid) {
        return CRT_ERR_NO_OUTPUT;
    }
    if (!crt_holds(g->model->tensors[words[1]].bytes, words[2], words[3])) {
        return CRT_ERR_SIZE;
    }
    return give(r, from + words[2], words[3]);
}

static uint32_t now(const struct crt_rpc *r)
{
    const struct crt_rpc_config *c = r->config;

    return c->ticks == NULL ? 0u : c->ticks(c->context);
}

/* What a run has come to: failed step, what is missing, ticks. */
static int32_t ran(struct crt_rpc *r, const struct crt_graph *g, int32_t error,
                   uint64_t ticks)
{
    const struct crt_tensor *missing = NULL;
    uint8_t *to = crt_rpc_answer(r);
    uint32_t index = CRT_RPC_NONE;
    ptrdiff_t at;

    if (error != CRT_OK) {
        missing = crt_graph_missing(g);
    }
    if (missing != NULL) {
        at = missing - g->model->tensors;
        index = (uint32_t)at;
    }
    crt_put32(to, (uint32_t)(int32_t)g->failed_step);
    crt_put32(to + 4, index);
    crt_put32(to + 8, (uint32_t)ticks);
    crt_put32(to + 12, (uint32_t)(ticks >> 32));
    r->reply_bytes = 16;
    return error;
}

static int32_t run(struct crt_rpc *r, struct instance *g, uint32_t count)
{
    uint64_t ticks = 0;
    int32_t error = CRT_OK;

    crt_rpc_working(r);
    for (; count > 0u && error == CRT_OK; count--) {
        uint32_t start = now(r);

        error = crt_graph_run(&g->graph, g->pointers);
        ticks += (uint32_t)(now(r) - start);
    }
    return ran(r, &g->graph, error, ticks);
}

static int32_t run_stage(struct crt_rpc *r, struct instance *g, uint32_t stage)
{
    uint32_t start;
    int32_t error;

    crt_rpc_working(r);
    start = now(r);
    error = crt_graph_run_stage(&g->graph, g->pointers, stage);
    return ran(r, &g->graph, error, (uint32_t)(now(r) - start));
}

/* Lets an input be read where another graph, or this one, has a tensor. */
static int32_t bind(struct crt_rpc *r, struct crt_graph *g,
                    const uint32_t *words)
{
    const struct instance *other = find_graph(r, words[2]);
    const struct crt_tensor *tensor;
    struct crt_array array;
    int32_t error;

    if (words[2] == CRT_RPC_NONE) {
        return crt_graph_bind_input(g, words[1], NULL, 0);
    }
    if (other == NULL) {
        return CRT_ERR_INDEX;
    }
    /* MISRA 11.8: what it is bound to is only read */
    array.data = (void *)look(&other->graph, words[3], &error);
    if (array.data == NULL) {
        return error;
    }
    tensor = &other->graph.model->tensors[words[3]];
    array.dims = tensor->dims;
    array.strides = NULL;
    array.dtype = tensor->dtype;
    array.rank = tensor->rank;
    return crt_graph_bind_input_array(g, words[1], &array);
}

#ifndef CRT_NO_HOOK
/* Keeps rows where the table at the start of the buffer says, if it does. */
static int record(void *context, uint32_t step, uint32_t first_row,
                  uint32_t count, const void *rows)
{
    const struct instance *g = (const struct instance *)context;
    struct crt_rpc *r = g->server; /* MISRA 11.8: g is const, the server not */
    const struct crt_rpc_object *o = crt_rpc_find(r, g->watch, CRT_RPC_BUFFER);
    const struct crt_step *s = &g->graph.model->steps[step];
    const uint8_t *entry;
    uint8_t *memory;
    uint32_t left;
    uint64_t from;
    uint64_t bytes;
    ptrdiff_t before;

    if (o == NULL || step >= g->steps || step >= o->bytes / WATCHED ||
        g->output >= s->output_count) {
        return 0;
    }
    if (g->output != 0u) {
        rows = (const uint8_t *)g->graph.base[s->operands[g->output].buffer] +
               s->operands[g->output].at;
        first_row = 0;
        count = 1;
    }
    memory = (uint8_t *)crt_rpc_memory(r, o);
    entry = memory + (size_t)WATCHED * step;
    bytes = (uint64_t)crt_get32(entry + 4) * count;
    from = (uint64_t)crt_get32(entry + 4) * first_row + crt_get32(entry);
    before = (const uint8_t *)rows - r->config->memory;
    left = r->config->memory_bytes - (uint32_t)before;
    if (bytes <= left && bytes <= o->bytes && from <= o->bytes - bytes) {
        crt_copy(memory + from, rows, (uint32_t)bytes);
    }
    return 0;
}

static int32_t watch(struct instance *g, const uint32_t *words)
{
    g->watch = words[1];
    g->steps = words[2] & 0xFFFFu;
    g->output = words[2] >> 16;
    return crt_graph_set_hook(&g->graph,
                              words[1] == CRT_RPC_NONE ? NULL : record, g);
}
#endif

static int32_t load(struct crt_rpc *r, struct crt_graph *g, uint32_t number)
{
    const struct crt_rpc_object *image = crt_rpc_find(r, number, CRT_RPC_IMAGE);

    if (image == NULL) {
        return CRT_ERR_INDEX;
    }
    return crt_graph_load_params(g,
                                 (struct crt_params *)crt_rpc_memory(r, image));
}

static int32_t share(struct crt_rpc *r, struct crt_graph *g,
                     const uint32_t *words)
{
    const struct instance *donor = find_graph(r, words[2]);

    if (donor == NULL) {
        return CRT_ERR_INDEX;
    }
    return crt_graph_share_parameter(g, words[1], &donor->graph, words[3]);
}

/* ---- all calls ----------------------------------------------------------- */

/* Those of a graph, the first word of them all. */
static int32_t do_graph(struct crt_rpc *r, uint32_t call, const uint32_t *words,
                        const uint8_t *data, uint32_t bytes)
{
    struct instance *g = find_graph(r, words[0]);

    if (g == NULL) {
        return CRT_ERR_INDEX;
    }
    switch (call) {
    case CRT_RPC_SET:
        return set(&g->graph, words, data, bytes);
    case CRT_RPC_GET:
        return get(r, &g->graph, words);
    case CRT_RPC_RUN:
        return run(r, g, words[1]);
    case CRT_RPC_STAGE:
        return run_stage(r, g, words[1]);
    case CRT_RPC_SETUP:
        return ran(r, &g->graph, crt_graph_setup(&g->graph), 0);
    case CRT_RPC_RESET:
        return crt_graph_reset(&g->graph);
    case CRT_RPC_LOAD:
        return load(r, &g->graph, words[1]);
    case CRT_RPC_SHARE:
        return share(r, &g->graph, words);
    case CRT_RPC_UNBIND:
        return crt_graph_release_params(&g->graph);
    case CRT_RPC_BIND:
        return bind(r, &g->graph, words);
    default:
#ifdef CRT_NO_HOOK
        return CRT_ERR_CALL;
#else
        return watch(g, words);
#endif
    }
}

int32_t crt_rpc_do(struct crt_rpc *r, uint32_t call, const uint32_t *words,
                   const uint8_t *data, uint32_t bytes)
{
    switch (call) {
    case CRT_RPC_ECHO:
        return give(r, data, bytes);
    case CRT_RPC_TICKS:
        crt_put32(crt_rpc_answer(r), now(r));
        r->reply_bytes = 4;
        return CRT_OK;
    case CRT_RPC_ALLOCATE:
        return crt_rpc_allocate(r, words[0], CRT_RPC_BUFFER);
    case CRT_RPC_RELEASE:
        return release(r, words[0]);
    case CRT_RPC_WRITE:
        return write(r, words, data, bytes);
    case CRT_RPC_READ:
        return read(r, words);
    case CRT_RPC_OPEN:
        return open(r, words);
    case CRT_RPC_CREATE:
        return create(r);
    default:
        return do_graph(r, call, words, data, bytes);
    }
}

#endif
