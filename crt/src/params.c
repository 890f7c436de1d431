/* params.c: verifies a parameter image once; after that its own numbers are
 * trusted. The rules, in this order, are those of docs/formats.md.
 * Knows no model and no way to unpack. */
#include "crt/params.h"
#include "crt/crc.h"
#include "crt/little.h" /* payloads are used in place */

#define MAGIC 0x50545243u /* "CRTP" */

enum {
    HEADER_BYTES = 40,
    ENTRY_BYTES = 40,
    CRC_FROM = 8, /* the checksum is of all that follows it */
    MIN_ALIGN = 4
};

/* ---- little-endian fields, wherever they lie ---------------------------- */

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) | get16(at + 2) << 16;
}

static uint64_t get64(const uint8_t *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* ---- the table ----------------------------------------------------------- */

static const uint8_t *entry_of(const uint8_t *image, uint32_t index)
{
    return image + HEADER_BYTES + (size_t)index * ENTRY_BYTES;
}

static void read_entry(const uint8_t *image, uint32_t index,
                       struct crt_param *param)
{
    const uint8_t *entry = entry_of(image, index);

    param->name = (const char *)image + get32(entry);
    param->dtype = entry[6];
    param->rank = entry[7];
    param->dims = (const int32_t *)(const void *)(image + get32(entry + 8));
    param->layout = get32(entry + 12);
    param->codec = (uint16_t)get16(entry + 16);
    param->data = image + get32(entry + 20);
    param->stored = get32(entry + 24);
    param->bytes = get32(entry + 28);
    param->content = get64(entry + 32);
}

/* Bytes of one element of an enum crt_dtype; 0 for what is not a type. */
static uint32_t element_bytes(uint32_t dtype)
{
    static const uint8_t sizes[] = {0, 1, 1, 1, 2, 4, 8, 4, 2, 4, 8, 8, 2, 2};

    return dtype < sizeof sizes ? sizes[dtype] : 0u;
}

static int compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}

/* ---- the check ----------------------------------------------------------- */

/* What is known of an image while it is checked. */
struct check {
    const uint8_t *image;
    uint32_t total; /* bytes */
    uint32_t first; /* that an entry may point to: the end of the table */
    uint32_t align;
    uint32_t count;
};

static int holds(const struct check *c, uint32_t at, uint32_t bytes)
{
    return at >= c->first && at <= c->total && bytes <= c->total - at;
}

static int check_header(struct check *c, const uint8_t *image, size_t bytes)
{
    if (bytes < HEADER_BYTES || get32(image) != MAGIC) {
        return CRT_ERR_MAGIC;
    }
    if (get16(image + 8) != (uint32_t)CRT_PARAMS_VERSION) {
        return CRT_ERR_VERSION;
    }
    c->image = image;
    c->align = get16(image + 10);
    c->total = get32(image + 12);
    c->count = get32(image + 16);
    if (c->total < HEADER_BYTES || c->total > bytes) {
        return CRT_ERR_FORMAT;
    }
    if (crt_crc32(0, image + CRC_FROM, c->total - CRC_FROM) !=
        get32(image + 4)) {
        return CRT_ERR_CHECKSUM;
    }
    if (get32(image + 20) != 0u || c->align < MIN_ALIGN ||
        (c->align & (c->align - 1u)) != 0u) {
        return CRT_ERR_FORMAT;
    }
    if (c->count > (c->total - HEADER_BYTES) / ENTRY_BYTES) {
        return CRT_ERR_FORMAT;
    }
    c->first = HEADER_BYTES + ENTRY_BYTES * c->count;
    return ((uintptr_t)image & (c->align - 1u)) == 0u ? CRT_OK : CRT_ERR_ALIGN;
}

/* A name of the length that it says, after the name of the entry before. */
static int check_name(const struct check *c, uint32_t index)
{
    const uint8_t *entry = entry_of(c->image, index);
    uint32_t at = get32(entry);
    uint32_t length = get16(entry + 4);
    const char *before = "";
    const char *name;
    uint32_t i = 0;

    if (!holds(c, at, length + 1u)) {
        return CRT_ERR_FORMAT;
    }
    name = (const char *)c->image + at;
    while (i < length && name[i] != '\0') {
        i++;
    }
    if (i < length || name[length] != '\0') {
        return CRT_ERR_FORMAT;
    }
    if (index > 0u) {
        before = (const char *)c->image + get32(entry - ENTRY_BYTES);
    }
    return compare(before, name) < 0 ? CRT_OK : CRT_ERR_FORMAT;
}

/* Bytes of a row-major tensor; more than 32 bits hold if they would not, or
 * if a dimension is negative. */
static uint64_t size_of(const uint8_t *dims, uint32_t rank, uint32_t element)
{
    uint64_t size = element;
    uint32_t i;

    for (i = 0; i < rank; i++) {
        uint32_t dim = get32(dims + 4u * (size_t)i);

        if (dim > (uint32_t)INT32_MAX) {
            return UINT64_MAX;
        }
        if (dim == 0u) {
            size = 0;
        } else if (size <= UINT32_MAX) {
            size *= dim;
        } else {
            /* too large already, and it stays so but for a 0 */
        }
    }
    return size;
}

static int check_entry(const struct check *c, uint32_t index)
{
    const uint8_t *entry = entry_of(c->image, index);
    uint32_t element = element_bytes(entry[6]);
    uint32_t rank = entry[7];
    uint32_t dims = get32(entry + 8);
    uint32_t data = get32(entry + 20);
    uint32_t stored = get32(entry + 24);
    uint32_t bytes = get32(entry + 28);
    uint64_t size;

    if (element == 0u || get16(entry + 18) != 0u) {
        return CRT_ERR_FORMAT;
    }
    if (dims % 4u != 0u || !holds(c, dims, 4u * rank)) {
        return CRT_ERR_FORMAT;
    }
    if (data % c->align != 0u || !holds(c, data, stored)) {
        return CRT_ERR_FORMAT;
    }
    if (get16(entry + 16) == (uint32_t)CRT_CODEC_NONE && stored != bytes) {
        return CRT_ERR_FORMAT;
    }
    size = size_of(c->image + dims, rank, element);
    if (size == UINT64_MAX || (get32(entry + 12) == 0u && size != bytes)) {
        return CRT_ERR_FORMAT;
    }
    return CRT_OK;
}

/* ---- what callers see ---------------------------------------------------- */

int crt_params_verify(struct crt_params *p, const void *image, size_t bytes)
{
    struct check c;
    uint32_t i;
    int error;

    if (p == NULL) {
        return CRT_ERR_NULL;
    }
    p->image = NULL;
    p->unpacked = NULL;
    p->count = 0;
    p->plan = 0;
    p->content = 0;
    p->users = 0;
    if (image == NULL) {
        return CRT_ERR_NULL;
    }
    error = check_header(&c, (const uint8_t *)image, bytes);
    if (error != CRT_OK) {
        return error;
    }
    for (i = 0; i < c.count; i++) {
        error = check_name(&c, i);
        if (error == CRT_OK) {
            error = check_entry(&c, i);
        }
        if (error != CRT_OK) {
            return error;
        }
    }
    p->image = c.image;
    p->count = c.count;
    p->plan = get64(c.image + 24);
    p->content = get64(c.image + 32);
    return CRT_OK;
}

int crt_params_find(const struct crt_params *p, const char *name)
{
    uint32_t low = 0;
    uint32_t high;

    if (p == NULL || name == NULL) {
        return CRT_ERR_NULL;
    }
    high = p->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2u;
        const char *there =
            (const char *)p->image + get32(entry_of(p->image, middle));
        int order = compare(name, there);

        if (order == 0) {
            return (int)middle;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    return CRT_ERR_NAME;
}

uint32_t crt_params_unpacked_at(const struct crt_params *p, uint32_t index)
{
    const uint32_t most = UINT32_MAX - CRT_UNPACK_ALIGN;
    struct crt_param param;
    uint32_t at = 0;
    uint32_t i;

    for (i = 0; i < index; i++) {
        read_entry(p->image, i, &param);
        if (param.codec == (uint32_t)CRT_CODEC_NONE) {
            continue;
        }
        if (at > most || param.bytes > most - at) {
            return UINT32_MAX; /* more than there can be */
        }
        at += (param.bytes + CRT_UNPACK_ALIGN - 1u) & ~(CRT_UNPACK_ALIGN - 1u);
    }
    return at;
}

int crt_params_get(const struct crt_params *p, uint32_t index,
                   struct crt_param *param)
{
    if (p == NULL || param == NULL) {
        return CRT_ERR_NULL;
    }
    if (index >= p->count) {
        return CRT_ERR_INDEX;
    }
    read_entry(p->image, index, param);
    if (p->unpacked != NULL && param->codec != (uint32_t)CRT_CODEC_NONE) {
        param->data = p->unpacked + crt_params_unpacked_at(p, index);
        param->stored = param->bytes;
        param->codec = CRT_CODEC_NONE;
    }
    return CRT_OK;
}
