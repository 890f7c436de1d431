/* crt/params.h: a parameter image (docs/formats.md): weights in flash or in a
 * loaded file, checked once and then used in place.
 * Knows no model; allocates nothing. Unpacking is in crt/unpack.h. */
#ifndef CRT_PARAMS_H
#define CRT_PARAMS_H

#include "crt/error.h"
#include "crt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the image format that this crt reads. */
#define CRT_PARAMS_VERSION 1

/* For every function of this header:
 *
 * Thread  an image that was verified is only read: any number of threads may
 *         use it at the same time
 * Errors  every int return is 0 or a negative code of error.h; p must have been
 *         through crt_params_verify, or be all zero: then it holds nothing */

/* A verified image. Zero it or leave it static; read only count, plan,
 * content and users.
 *
 * Owner   the caller; the image too, which must outlive it */
struct crt_params {
    const uint8_t *image;    /* NULL: none */
    const uint8_t *unpacked; /* unpacked payloads; NULL: not unpacked yet */
    uint32_t count;          /* parameters in it */
    uint64_t plan;           /* hash of the plan of its layouts; 0: of none */
    uint64_t content;        /* equal for equal parameters, packed or not */
    uint32_t users;          /* parameters of instances that are bound to it */
};

/* How the payload of a parameter is packed. Values are for ever. */
enum crt_codec_number {
    CRT_CODEC_NONE = 0,     /* as it is */
    CRT_CODEC_LZ4 = 1,      /* an LZ4 block, see crt_lz4_unpack */
    CRT_CODEC_USER = 0x8000 /* from here on: yours */
};

/* One parameter of an image. Everything points into the image. */
struct crt_param {
    uint64_t content;    /* first 8 bytes of SHA-256 of the unpacked payload */
    const char *name;    /* UTF-8, ends in NUL */
    const int32_t *dims; /* `rank` of them, outermost first */
    const void *data;    /* `stored` bytes, aligned as the image says */
    uint32_t stored;     /* bytes in the image */
    uint32_t bytes;      /* bytes when unpacked; equals stored for NONE */
    uint32_t layout;     /* 0: row-major; else an arrangement of some plan's */
    uint16_t codec;      /* enum crt_codec_number, or a number of yours */
    uint8_t dtype;       /* enum crt_dtype */
    uint8_t rank;
};

/* Checks an image that may hold anything, and opens it. Nothing outside
 * image[0 .. bytes - 1] is read, here or ever after.
 *
 * Units   bytes: of the image, or more (a flash partition, say)
 * Errors  CRT_ERR_NULL; CRT_ERR_MAGIC, CRT_ERR_VERSION: no image for this crt;
 *         CRT_ERR_CHECKSUM: damaged; CRT_ERR_ALIGN: image is not aligned to
 *         what its payloads need; CRT_ERR_FORMAT: cut, or inconsistent. p is
 *         then all zero
 * Time    one pass for the checksum (crt/crc.h), then about 200 instructions a
 *         parameter */
int crt_params_verify(struct crt_params *p, const void *image, size_t bytes);

/* The index of a parameter, found by its name.
 *
 * Time    binary search
 * Errors  CRT_ERR_NULL, CRT_ERR_NAME */
int crt_params_find(const struct crt_params *p, const char *name);

/* The end of the packed parameters before `index`, once they are unpacked.
 *
 * Units   bytes; each payload takes a multiple of CRT_UNPACK_ALIGN; UINT32_MAX
 *         if it is more than that */
#define CRT_UNPACK_ALIGN 16u
uint32_t crt_params_unpacked_at(const struct crt_params *p, uint32_t index);

/* The facts of parameter `index`; parameters are in the order of their names,
 * compared as unsigned bytes.
 *
 * Errors  CRT_ERR_NULL, CRT_ERR_INDEX; param is then untouched */
int crt_params_get(const struct crt_params *p, uint32_t index,
                   struct crt_param *param);

#ifdef __cplusplus
}
#endif

#endif
