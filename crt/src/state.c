/* state.c: tensors that a model reads in one run and has assigned in another.
 * Saved: a checksum, then each piece in turn. The checksum is of the id of the
 * arrangement, which is not there itself, and of all pieces: whichever words of
 * a save have reached memory, it is whole, or as before, or refused. */
#include "crt/state.h"

#include "crt/crc.h"
#include "crt/slots.h"

static void *memory(const struct crt_graph *g, const struct crt_kept *kept)
{
    return (uint8_t *)g->base[kept->region] + kept->at;
}

void crt_state_forget(const struct crt_graph *g)
{
    const struct crt_kept *kept = g->model->state->kept;
    const struct crt_kept *end = kept + g->model->state->count;
    uint32_t i;

    for (; kept != end; kept++) {
        const uint8_t *initial = (const uint8_t *)kept->initial;
        uint8_t *to = (uint8_t *)memory(g, kept);

        for (i = 0; i < kept->bytes; i++) {
            to[i] = initial == NULL ? 0u : initial[i];
        }
    }
}

int crt_state_bytes(const struct crt_graph *g)
{
    if (!crt_is_ready(g)) {
        return CRT_ERR_NULL;
    }
    return g->model->state == NULL ? CRT_ERR_STATE
                                   : (int)g->model->state->bytes;
}

static int check(const struct crt_graph *g, const void *data, uint32_t bytes)
{
    int wanted = crt_state_bytes(g);

    if (wanted < 0) {
        return wanted;
    }
    if (data == NULL) {
        return CRT_ERR_NULL;
    }
    return bytes == (uint32_t)wanted ? CRT_OK : CRT_ERR_SIZE;
}

/* The sum of an instance is made of what it keeps, not of what memory has made
 * of a copy: a copy that is wrong is refused later. */
int crt_state_save(const struct crt_graph *g, void *to, uint32_t bytes)
{
    const struct crt_state *state;
    uint8_t *at = (uint8_t *)to;
    uint32_t sum;
    uint32_t i;
    int error = check(g, to, bytes);

    if (error != CRT_OK) {
        return error;
    }
    state = g->model->state;
    sum = crt_crc32(0, &state->id, sizeof state->id);
    at += sizeof sum;
    for (i = 0; i < state->count; i++) {
        const struct crt_kept *kept = &state->kept[i];

        sum = crt_crc32(sum, memory(g, kept), kept->bytes);
        crt_copy(at, memory(g, kept), kept->bytes);
        at += kept->bytes;
    }
    crt_copy(to, &sum, sizeof sum);
    return CRT_OK;
}

int crt_state_restore(struct crt_graph *g, const void *from, uint32_t bytes)
{
    const struct crt_state *state;
    const uint8_t *at = (const uint8_t *)from;
    uint32_t sum;
    uint32_t wanted;
    uint32_t i;
    int error = check(g, from, bytes);

    if (error != CRT_OK) {
        return error;
    }
    state = g->model->state;
    crt_copy(&wanted, at, sizeof wanted);
    at += sizeof wanted;
    sum = crt_crc32(0, &state->id, sizeof state->id);
    sum = crt_crc32(sum, at, bytes - (uint32_t)sizeof wanted);
    if (sum != wanted) {
        return CRT_ERR_STATE;
    }
    crt_stop(g);
    g->valid = 0;
    for (i = 0; i < state->count; i++) {
        crt_copy(memory(g, &state->kept[i]), at, state->kept[i].bytes);
        at += state->kept[i].bytes;
    }
    return CRT_OK;
}
