/* image.h: writes parameter images for the C tests, by docs/formats.md. */
#ifndef IMAGE_H
#define IMAGE_H

#include "crt/crc.h"
#include "crt/params.h"

#include <string.h>

enum { IMAGE_BYTES = 512, IMAGE_ALIGN = 16 };

/* A parameter to write: `count` bytes of `data`; names in order. */
struct entry {
    const char *name;
    uint32_t dtype;
    uint32_t rank;
    int32_t dims[2];
    uint32_t layout;
    uint32_t codec;
    uint64_t content;
    uint32_t count;
    const void *data;
};

static void image_put(uint8_t *at, uint32_t size, uint64_t value)
{
    for (; size > 0; size--, value >>= 8)
        *at++ = (uint8_t)value;
}

/* 16 bytes of name, 8 of shape and `count` in steps of 16 for each entry. */
static void image_write(uint8_t *image, const struct entry *entries,
                        uint32_t count)
{
    uint32_t at = (40u + 40u * count + 15u) & ~15u;
    uint32_t i;

    memset(image, 0, IMAGE_BYTES);
    for (i = 0; i < count; i++) {
        const struct entry *e = &entries[i];
        uint8_t *row = image + 40 + 40 * i;

        image_put(row, 4, at);
        image_put(row + 4, 2, strlen(e->name));
        image_put(row + 6, 1, e->dtype);
        image_put(row + 7, 1, e->rank);
        image_put(row + 8, 4, at + 16);
        image_put(row + 12, 4, e->layout);
        image_put(row + 16, 2, e->codec);
        image_put(row + 20, 4, at + 32);
        image_put(row + 24, 4, e->count);
        image_put(row + 28, 4, e->count);
        image_put(row + 32, 8, e->content);
        memcpy(image + at, e->name, strlen(e->name));
        memcpy(image + at + 16, e->dims, sizeof e->dims);
        memcpy(image + at + 32, e->data, e->count);
        at += (32u + e->count + 15u) & ~15u;
    }
    memcpy(image, "CRTP", 4);
    image_put(image + 8, 2, CRT_PARAMS_VERSION);
    image_put(image + 10, 2, IMAGE_ALIGN);
    image_put(image + 12, 4, at);
    image_put(image + 16, 4, count);
    image_put(image + 4, 4, crt_crc32(0, image + 8, at - 8));
}

#endif
