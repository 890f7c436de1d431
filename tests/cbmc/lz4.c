/* A block of any bytes, of any length up to MOST, into any room up to ROOM: no
 * access leaves either. */
#include "crt/error.h"
#include "crt/lz4.h"

uint32_t nondet_bytes(void);

int main(void)
{
    const uint32_t bytes = nondet_bytes();
    const uint32_t room = nondet_bytes();
    static uint8_t block[MOST];
    static uint8_t memory[ROOM];
    const uint8_t *from;
    uint8_t *to;
    int status;

    __CPROVER_assume(bytes <= MOST && room <= ROOM);
    __CPROVER_havoc_object(block);
    from = block + (MOST - bytes); /* nothing lies behind it */
    to = memory + (ROOM - room);
    status = crt_lz4_unpack(from, bytes, to, room);
    __CPROVER_assert(status == CRT_OK || status == CRT_ERR_UNPACK,
                     "a block is whole, or damaged");
    return 0;
}
