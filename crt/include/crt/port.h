/* crt/port.h: what crt asks of the platform.
 * Knows nothing of models. */
#ifndef CRT_PORT_H
#define CRT_PORT_H

#include "crt/types.h"

#ifndef CRT_NO_STRING_H
#include <string.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Copies `bytes` bytes; the two areas do not overlap. */
static inline void crt_copy(void *to, const void *from, size_t bytes)
{
#ifdef CRT_NO_STRING_H
    uint8_t *out = (uint8_t *)to;
    const uint8_t *in = (const uint8_t *)from;

    while (bytes-- > 0)
        *out++ = *in++;
#else
    memcpy(to, from, bytes);
#endif
}

#ifdef __cplusplus
}
#endif

#endif
