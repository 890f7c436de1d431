/* crt/objects.h: objects in the memory of the server of crt/rpc.h, for crt's
 * own sources. Knows no call and no frame. */
#ifndef CRT_OBJECTS_H
#define CRT_OBJECTS_H

#include "crt/rpc.h"

#ifndef CRT_NO_RPC

#ifdef __cplusplus
extern "C" {
#endif

#define CRT_RPC_NONE 0xFFFFFFFFu

CRT_C_BODIES

static inline uint32_t crt_align_up(uint32_t bytes, uint32_t align)
{
    return (bytes + align - 1u) & ~(align - 1u);
}

/* Whether `bytes` from `at` on are within `most`. */
static inline int crt_holds(uint32_t most, uint32_t at, uint32_t bytes)
{
    return at <= most && bytes <= most - at;
}

static inline void *crt_rpc_memory(const struct crt_rpc *r,
                                   const struct crt_rpc_object *o)
{
    return r->config->memory + o->at;
}

CRT_C_BODIES_END

/* The object of this number and kind; NULL: there is none. */
struct crt_rpc_object *crt_rpc_find(struct crt_rpc *r, uint32_t number,
                                    uint32_t kind);

/* Makes an object in the lowest memory that is vacant: at 0 or behind another.
 *
 * Errors  its number, or CRT_ERR_MEMORY */
int32_t crt_rpc_allocate(struct crt_rpc *r, uint32_t bytes, uint32_t kind);

#ifdef __cplusplus
}
#endif

#endif

#endif
