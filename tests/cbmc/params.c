/* An image of any bytes, up to MOST: what is opened lies inside of it, with its
 * name, its shape and its payload. */
#include "crt/crc.h"
#include "crt/params.h"

uint32_t nondet_number(void);

/* Any number: which bytes have which checksum is not what is asked. */
uint32_t crt_crc32(uint32_t crc, const void *data, size_t bytes)
{
    (void)crc;
    __CPROVER_assert(__CPROVER_r_ok(data, bytes), "what is summed is there");
    return nondet_number();
}

int main(void)
{
    static uint32_t image[MOST / 4];
    const size_t bytes = nondet_number();
    struct crt_params params;
    struct crt_param param;
    uint32_t i;

    __CPROVER_assume(bytes <= MOST && bytes % 4u == 0u);
    __CPROVER_havoc_object(image);
    /* nothing lies behind it */
    if (crt_params_verify(&params, image + (MOST - bytes) / 4u, bytes) != 0) {
        return 0;
    }
    for (i = 0; i < params.count; i++) {
        __CPROVER_assert(crt_params_get(&params, i, &param) == 0,
                         "it is there");
        __CPROVER_assert(__CPROVER_r_ok(param.name, 1), "its name");
        __CPROVER_assert(__CPROVER_r_ok(param.dims, 4u * param.rank),
                         "its shape");
        __CPROVER_assert(__CPROVER_r_ok(param.data, param.stored),
                         "its payload");
    }
    (void)crt_params_find(&params, "b");
    return 0;
}
