/* A stream of any MOST bytes into rooms of any size up to ROOM: nothing is
 * written outside of the room, and a frame that is given lies inside of it. */
#include "crt/crc.h"
#include "crt/frame.h"

uint32_t nondet_number(void);
uint8_t nondet_byte(void);

/* Any number: which bytes have which checksum is not what is asked. */
uint32_t crt_crc32(uint32_t crc, const void *data, size_t bytes)
{
    __CPROVER_assert(__CPROVER_r_ok(data, bytes), "what is summed is there");
    return nondet_number();
}

int main(void)
{
    static uint8_t memory[ROOM];
    const uint32_t room = nondet_number();
    struct crt_frame_input in;
    struct crt_frame frame;
    uint32_t i;

    __CPROVER_assume(room >= CRT_FRAME_EXTRA && room <= ROOM);
    crt_frame_begin(&in, memory + (ROOM - room), room);
    for (i = 0; i < MOST; i++) {
        if (crt_frame_take(&in, nondet_byte(), &frame)) {
            __CPROVER_assert(frame.data >= in.room &&
                                 frame.bytes <= room - CRT_FRAME_EXTRA &&
                                 __CPROVER_r_ok(frame.data, frame.bytes),
                             "a frame lies in its room");
        }
    }
    return 0;
}
