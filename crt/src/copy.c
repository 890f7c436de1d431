/* copy.c: weights copied from flash to faster memory. Linked only where a model
 * has some. */
#include "crt/copy.h"
#include "crt/error.h"
#include "crt/port.h"

int crt_copy_weights(const void *from, uint32_t from_bytes, void *to,
                     uint32_t to_bytes)
{
    if (from_bytes != to_bytes) {
        return CRT_ERR_UNPACK;
    }
    crt_copy(to, from, to_bytes);
    return CRT_OK;
}
