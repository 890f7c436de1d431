/* objects.c: instances, images and buffers in the memory of the server of
 * crt/rpc.h: found by number, laid side by side. Knows no call. */
#include "crt/objects.h"

#ifndef CRT_NO_RPC

struct crt_rpc_object *crt_rpc_find(struct crt_rpc *r, uint32_t number,
                                    uint32_t kind)
{
    if (number >= (uint32_t)CRT_RPC_OBJECTS ||
        r->objects[number].kind != kind) {
        return NULL;
    }
    return &r->objects[number];
}

static int is_vacant(const struct crt_rpc *r, uint32_t at, uint32_t bytes)
{
    uint32_t i;

    if (!crt_holds(r->config->memory_bytes, at, bytes)) {
        return 0;
    }
    for (i = 0; i < (uint32_t)CRT_RPC_OBJECTS; i++) {
        const struct crt_rpc_object *o = &r->objects[i];

        if (o->kind != (uint32_t)CRT_RPC_FREE && at < o->at + o->bytes &&
            o->at < at + bytes) {
            return 0;
        }
    }
    return 1;
}

int32_t crt_rpc_allocate(struct crt_rpc *r, uint32_t bytes, uint32_t kind)
{
    struct crt_rpc_object *made = NULL;
    uint32_t best = CRT_RPC_NONE;
    ptrdiff_t number;
    uint32_t i;

    if (bytes > r->config->memory_bytes) {
        return CRT_ERR_MEMORY;
    }
    bytes = crt_align_up(bytes == 0u ? 1u : bytes, CRT_RPC_ALIGN);
    if (is_vacant(r, 0, bytes) != 0) {
        best = 0;
    }
    for (i = 0; i < (uint32_t)CRT_RPC_OBJECTS; i++) {
        struct crt_rpc_object *o = &r->objects[i];
        uint32_t behind = o->at + o->bytes;

        if (o->kind == (uint32_t)CRT_RPC_FREE) {
            made = o;
        } else if (behind < best && is_vacant(r, behind, bytes)) {
            best = behind;
        } else {
            /* what is vacant lies lower */
        }
    }
    if (made == NULL || best == CRT_RPC_NONE) {
        return CRT_ERR_MEMORY;
    }
    made->at = best;
    made->bytes = bytes;
    made->kind = kind;
    number = made - r->objects;
    return (int32_t)number;
}

#endif
