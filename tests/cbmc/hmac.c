/* The tag of a head and any bytes under any key, as long as a block without its
 * end, one byte more, and a block: no access leaves its memory. Lengths alone
 * decide which way the code goes, so these are listed, and bytes are any. */
#include "crt/hmac.h"

int main(void)
{
    static uint8_t key[CRT_HMAC_BYTES];
    static uint8_t head[12];
    static uint8_t data[MOST];
    static const uint8_t lengths[] = {55 - 12, 56 - 12, MOST};
    uint32_t i;

    __CPROVER_havoc_object(key);
    __CPROVER_havoc_object(head);
    __CPROVER_havoc_object(data);
    for (i = 0; i < sizeof lengths; i++) { /* nothing lies behind them */
        crt_hmac_sha256(key, head, sizeof head, data + (MOST - lengths[i]),
                        lengths[i], key);
    }
    return 0;
}
