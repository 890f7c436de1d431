/* What the tests call on an emulated Cortex-M4 that runs a network "net" with
 * NAME_verify. */
#include "net.h"

#include "crt/verify.h"

#define API __attribute__((used, section(".text.runner")))

static struct crt_verify state;

/* From one array on, by its number. */
API int verify_array(uint32_t index)
{
    state.next = index;
    state.at = 0;
    state.crc = 0;
    return net_verify(&state, UINT32_MAX);
}

API int verify_slice(uint32_t bytes)
{
    return net_verify(&state, bytes);
}

API int verify_all(void)
{
    return net_verify(NULL, 0);
}

API uint32_t passes(void)
{
    return state.passes;
}
