/* device.h: what programs here share: what tests call, and flash that is erased
 * and written by words. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

#define API __attribute__((used, section(".text.device")))

/* Words of a page: erased, in an order that nobody would count on, and then
 * written. */
static inline void flash(volatile uint32_t *to, const uint32_t *from,
                         uint32_t words)
{
    uint32_t i;

    for (i = 0; i < words; i++) {
        to[i * 7u % words] = 0xFFFFFFFFu;
    }
    for (i = 0; i < words; i++) {
        to[i] = from[i];
    }
}

#endif
