/* verify.c: checksums of a model's arrays, and copies of its tables of
 * addresses. Linked only by who asks for it. Addresses go through volatile
 * objects: no compiler may know what is there, and so leave the look out. */
#include "crt/verify.h"

#include "crt/crc.h"

static int is_same(const void *a, const void *b, uint32_t bytes)
{
    const volatile uint8_t *x = (const volatile uint8_t *)a;
    const volatile uint8_t *y = (const volatile uint8_t *)b;
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        const uint8_t one = x[i];

        if (one != y[i]) {
            return 0;
        }
    }
    return 1;
}

/* The next `bytes` of an array: whether they are not those of its copy, or
 * were its last, and its checksum is another. */
static int is_damaged(const struct crt_sum *sum, struct crt_verify *state,
                      uint32_t bytes)
{
    const uint8_t *volatile data = (const uint8_t *)sum->data;
    const uint8_t *copy = (const uint8_t *)sum->copy;

    if (copy != NULL) {
        return !is_same(&data[state->at], &copy[state->at], bytes);
    }
    state->crc = crt_crc32(state->crc, &data[state->at], bytes);
    if (sum->bytes - state->at != bytes) {
        return 0;
    }
    return state->crc != sum->crc;
}

/* To the first byte of an array. */
static void go_to(struct crt_verify *state, uint32_t next)
{
    state->next = next;
    state->at = 0;
    state->crc = 0;
}

/* Behind an array: the end of a pass, if it was the last. */
static void leave(struct crt_verify *state, uint32_t count)
{
    go_to(state, state->next + 1u);
    if (state->next == count) {
        state->passes++;
    }
}

int crt_model_verify(const struct crt_sums *both, struct crt_verify *state,
                     uint32_t bytes)
{
    struct crt_verify own = {0, 0, 0, 0};
    struct crt_verify *v = state == NULL ? &own : state;
    uint32_t left = bytes;

    if (both == NULL) {
        return CRT_ERR_NULL;
    }
    if (!is_same(&both[0], &both[1], (uint32_t)sizeof both[0])) {
        return CRT_ERR_CHECKSUM;
    }
    if (state == NULL) {
        left = UINT32_MAX;
    }
    if (v->next >= both->count) {
        go_to(v, 0);
    }
    while (left != 0u) {
        const struct crt_sum *sum = &both->sums[v->next];
        uint32_t part;

        if (!is_same(sum, &both->again[v->next], (uint32_t)sizeof *sum)) {
            leave(v, both->count);
            return CRT_ERR_CHECKSUM;
        }
        if (v->at >= sum->bytes) { /* bits of the state have flipped */
            go_to(v, v->next);
        }
        part = sum->bytes - v->at;
        if (part > left) {
            part = left;
        }
        if (is_damaged(sum, v, part) != 0) {
            leave(v, both->count);
            return CRT_ERR_CHECKSUM;
        }
        left -= part;
        v->at += part;
        if (v->at == sum->bytes) {
            leave(v, both->count);
            if (v->next == both->count) {
                left = 0;
            }
        }
    }
    return CRT_OK;
}
