/* Every call of crt/crc.h, crt/params.h and crt/unpack.h, right and wrong, on
 * an image written down here byte by byte. Prints each failed line; exit code
 * 1 if there was one. */
#include "crt/crc.h"
#include "crt/lz4.h"
#include "crt/unpack.h"
#include "expect.h"

#include <stdlib.h>
#include <string.h>

enum { TOTAL = 240, ENTRY_A = 40, ENTRY_B = 80, ENTRY_C = 120, ALIGN = 16 };

static union {
    uint8_t bytes[TOTAL + 16];
    int64_t align[2];
} image __attribute__((aligned(ALIGN)));

static uint8_t *const bytes = image.bytes;

static void put(uint32_t at, uint32_t size, uint64_t value)
{
    for (; size > 0; size--, value >>= 8)
        bytes[at++] = (uint8_t)value;
}

static void entry(uint32_t at, uint32_t name, uint32_t length, uint32_t dtype,
                  uint32_t rank, uint32_t dims)
{
    put(at, 4, name);
    put(at + 4, 2, length);
    put(at + 6, 1, dtype);
    put(at + 7, 1, rank);
    put(at + 8, 4, dims);
}

static void payload(uint32_t at, uint32_t layout, uint32_t codec, uint32_t data,
                    uint32_t stored, uint32_t size)
{
    put(at + 12, 4, layout);
    put(at + 16, 2, codec);
    put(at + 20, 4, data);
    put(at + 24, 4, stored);
    put(at + 28, 4, size);
    put(at + 32, 8, at + 0x1122334400000000u);
}

static void seal(void)
{
    put(4, 4, crt_crc32(0, bytes + 8, TOTAL - 8));
}

/* a int8[2,3] as it is, bb int32[4] in LZ4, c uint8[] in a codec of ours. */
static void make(void)
{
    static const uint8_t ones[13] = {0x43, 1, 0, 0, 0, 4, 0,
                                     0x50, 0, 1, 0, 0, 0};

    memset(bytes, 0, sizeof image);
    memcpy(bytes, "CRTP", 4);
    put(8, 2, CRT_PARAMS_VERSION);
    put(10, 2, ALIGN);
    put(12, 4, TOTAL);
    put(16, 4, 3);
    put(24, 8, 0x123456789abcdef0u);
    put(32, 8, 42);
    entry(ENTRY_A, 160, 1, CRT_INT8, 2, 168);
    payload(ENTRY_A, 0, CRT_CODEC_NONE, 192, 6, 6);
    entry(ENTRY_B, 162, 2, CRT_INT32, 1, 176);
    payload(ENTRY_B, 0, CRT_CODEC_LZ4, 208, sizeof ones, 16);
    entry(ENTRY_C, 165, 1, CRT_UINT8, 0, 180);
    payload(ENTRY_C, 7, CRT_CODEC_USER, 224, 3, 5);
    memcpy(bytes + 160, "a\0bb\0c", 7);
    put(168, 4, 2);
    put(172, 4, 3);
    put(176, 4, 4);
    memcpy(bytes + 192, "\1\2\3\4\5\6", 6);
    memcpy(bytes + 208, ones, sizeof ones);
    memcpy(bytes + 224, "xyz", 3);
    seal();
}

static void test_crc(void)
{
    uint32_t first = crt_crc32(0, "1234", 4);

    EXPECT(crt_crc32(0, "123456789", 9) == 0xcbf43926u);
    EXPECT(crt_crc32(first, "56789", 5) == 0xcbf43926u);
    EXPECT(crt_crc32(0, "", 0) == 0);
}

static void test_what_there_is(void)
{
    struct crt_params p;
    struct crt_param a;

    make();
    EXPECT(crt_params_verify(&p, bytes, TOTAL + 16) == CRT_OK);
    EXPECT(p.count == 3 && p.content == 42 && p.plan == 0x123456789abcdef0u);
    EXPECT(crt_params_find(&p, "a") == 0);
    EXPECT(crt_params_find(&p, "bb") == 1);
    EXPECT(crt_params_find(&p, "c") == 2);
    EXPECT(crt_params_find(&p, "") == CRT_ERR_NAME);
    EXPECT(crt_params_find(&p, "b") == CRT_ERR_NAME);
    EXPECT(crt_params_find(&p, "bbb") == CRT_ERR_NAME);
    EXPECT(crt_params_find(&p, "d\xc3") == CRT_ERR_NAME);
    EXPECT(crt_params_get(&p, 0, &a) == CRT_OK);
    EXPECT(strcmp(a.name, "a") == 0 && a.dtype == CRT_INT8 && a.layout == 0);
    EXPECT(a.rank == 2 && a.dims[0] == 2 && a.dims[1] == 3);
    EXPECT(a.data == bytes + 192 && a.stored == 6 && a.bytes == 6);
    EXPECT(a.codec == CRT_CODEC_NONE && a.content == 0x1122334400000028u);
    EXPECT(crt_params_get(&p, 2, &a) == CRT_OK && a.layout == 7);
    EXPECT(crt_params_get(&p, 3, &a) == CRT_ERR_INDEX);
    EXPECT(crt_params_get(NULL, 0, &a) == CRT_ERR_NULL);
    EXPECT(crt_params_get(&p, 0, NULL) == CRT_ERR_NULL);
    EXPECT(crt_params_find(NULL, "a") == CRT_ERR_NULL);
    EXPECT(crt_params_find(&p, NULL) == CRT_ERR_NULL);
}

/* @req params.h:Errors */
static void test_nothing_is_in_what_was_refused(void)
{
    struct crt_params p;

    make();
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_OK);
    EXPECT(crt_params_verify(&p, NULL, 0) == CRT_ERR_NULL);
    EXPECT(p.count == 0 && p.plan == 0 && p.content == 0);
    EXPECT(crt_params_find(&p, "a") == CRT_ERR_NAME);
    EXPECT(crt_params_verify(NULL, bytes, TOTAL) == CRT_ERR_NULL);
}

/* One field of the image changed to what it must not be. */
struct damage {
    uint32_t at;
    uint32_t size;
    uint32_t value;
    int error;
};

static const struct damage damages[] = {
    {8, 2, 2, CRT_ERR_VERSION},
    {10, 2, 2, CRT_ERR_FORMAT},        /* alignment */
    {10, 2, 24, CRT_ERR_FORMAT},       /* no power of 2 */
    {10, 2, 65535, CRT_ERR_FORMAT},    /* too large */
    {16, 4, 6, CRT_ERR_FORMAT},        /* more entries than bytes */
    {20, 4, 1, CRT_ERR_FORMAT},        /* reserved */
    {ENTRY_A, 4, 159, CRT_ERR_FORMAT}, /* name in the table */
    {ENTRY_A, 4, 241, CRT_ERR_FORMAT}, /* name outside */
    {ENTRY_A, 4, 0xffffffffu, CRT_ERR_FORMAT},
    {ENTRY_A + 4, 2, 80, CRT_ERR_FORMAT}, /* name ends outside */
    {ENTRY_A + 4, 2, 2, CRT_ERR_FORMAT},  /* NUL in a name */
    {ENTRY_A + 4, 2, 0, CRT_ERR_FORMAT},  /* no NUL after it */
    {160, 1, 'c', CRT_ERR_FORMAT},        /* out of order */
    {160, 3, 0x620062u, CRT_ERR_FORMAT},  /* "b", "bb": see below */
    {ENTRY_A + 6, 1, 0, CRT_ERR_FORMAT},  /* no type */
    {ENTRY_A + 6, 1, 14, CRT_ERR_FORMAT},
    {ENTRY_A + 7, 1, 100, CRT_ERR_FORMAT},  /* dims outside */
    {ENTRY_A + 8, 4, 170, CRT_ERR_FORMAT},  /* dims not aligned */
    {ENTRY_A + 8, 4, 156, CRT_ERR_FORMAT},  /* dims in the table */
    {ENTRY_A + 8, 4, 260, CRT_ERR_FORMAT},  /* dims behind the end */
    {168, 4, 3, CRT_ERR_FORMAT},            /* 9 elements in 6 bytes */
    {168, 4, 0x80000000u, CRT_ERR_FORMAT},  /* a negative dimension */
    {168, 4, 0, CRT_ERR_FORMAT},            /* no elements in 6 bytes */
    {168, 4, 0x55555555u, CRT_ERR_FORMAT},  /* 2^32 - 1 elements */
    {ENTRY_A + 18, 2, 1, CRT_ERR_FORMAT},   /* reserved */
    {ENTRY_A + 20, 4, 200, CRT_ERR_FORMAT}, /* payload not aligned */
    {ENTRY_A + 20, 4, 256, CRT_ERR_FORMAT}, /* payload outside */
    {ENTRY_A + 20, 4, 144, CRT_ERR_FORMAT}, /* payload in the table */
    {ENTRY_A + 20, 4, 272, CRT_ERR_FORMAT}, /* payload behind the end */
    {ENTRY_A + 24, 4, 49, CRT_ERR_FORMAT},
    {ENTRY_A + 24, 4, 5, CRT_ERR_FORMAT}, /* stored, but not packed */
    {ENTRY_C + 8, 4, 241, CRT_ERR_FORMAT},
    /* of what is arranged otherwise, so that its size proves nothing */
    {ENTRY_C + 4, 2, 2, CRT_ERR_FORMAT},  /* NUL in a name, and behind it */
    {ENTRY_C + 6, 1, 0, CRT_ERR_FORMAT},  /* no type */
    {ENTRY_C + 8, 4, 181, CRT_ERR_FORMAT} /* dims not aligned */
};

/* @req crt_params_verify:CRT_ERR_VERSION */
static void test_damaged_fields(void)
{
    struct crt_params p;
    uint32_t i;

    for (i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = &damages[i];

        make();
        put(d->at, d->size, d->value);
        if (d->size == 3) { /* "b" before "b": equal names */
            put(ENTRY_B + 4, 2, 1);
            put(163, 1, 0);
        }
        seal();
        EXPECT(crt_params_verify(&p, bytes, TOTAL) == d->error);
        EXPECT(p.image == NULL && p.count == 0);
    }
}

static void test_types_and_sizes(void)
{
    static const uint8_t sizes[14] = {0, 1, 1, 1, 2, 4, 8, 4, 2, 4, 8, 8, 2, 2};
    struct crt_params p;
    uint32_t dtype;

    for (dtype = CRT_BOOL; dtype <= CRT_BFLOAT16; dtype++) {
        make();
        put(ENTRY_A + 6, 1, dtype);
        put(ENTRY_A + 24, 8, 6u * sizes[dtype] * 0x100000001u);
        seal();
        EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_OK);
    }
    make(); /* 2^31 - 1 squared, and then 0: no elements, no overflow */
    put(ENTRY_A + 7, 1, 3);
    put(ENTRY_A + 24, 8, 0);
    put(168, 8, 0x7fffffff7fffffffu);
    put(176, 4, 0);
    put(ENTRY_B + 28, 4, 0);
    seal();
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_OK);
    put(176, 4, 4); /* without the 0: far more than 32 bits */
    put(ENTRY_B + 28, 4, 16);
    seal();
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_ERR_FORMAT);
}

static void test_wrong_bytes(void)
{
    struct crt_params p;
    uint32_t i;

    make();
    for (i = 0; i < TOTAL; i++) {
        bytes[i] ^= 0x10;
        EXPECT(crt_params_verify(&p, bytes, TOTAL) < 0);
        bytes[i] ^= 0x10;
        EXPECT(crt_params_verify(&p, bytes, i) < 0);
    }
    bytes[i - 1] ^= 1;
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_ERR_CHECKSUM);
    EXPECT(crt_params_verify(&p, bytes, TOTAL - 1) == CRT_ERR_FORMAT);
    EXPECT(crt_params_verify(&p, bytes, 39) == CRT_ERR_MAGIC);
    for (i = 0; i < 4; i++) {
        make();
        bytes[i] = '?';
        EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_ERR_MAGIC);
    }
    make();
    put(12, 4, 39);
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_ERR_FORMAT);
    make();
    memmove(bytes + 8, bytes, TOTAL);
    EXPECT(crt_params_verify(&p, bytes + 8, TOTAL) == CRT_ERR_ALIGN);
}

/* The codec of parameter c: each byte and, from the second on, twice. */
static int twice(void *context, uint16_t number, const void *from,
                 uint32_t from_bytes, void *to, uint32_t to_bytes)
{
    const char *in = (const char *)from;
    char *out = (char *)to;

    EXPECT(from_bytes == 3 && to_bytes == 5 && number == CRT_CODEC_USER);
    out[0] = in[0];
    out[1] = out[2] = in[1];
    out[3] = out[4] = in[2];
    return *(int *)context;
}

static void test_unpack(void)
{
    struct crt_params p;
    struct crt_param x;
    int32_t ones[4] = {0, 0, 0, 0};
    char to[6] = {0, 0, 0, 0, 0, 0};
    int answer = 0;
    int i;

    make();
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_OK);
    EXPECT(crt_params_get(&p, 0, &x) == CRT_OK);
    EXPECT(crt_params_unpack(NULL, to, 6, NULL, NULL) == CRT_ERR_NULL);
    EXPECT(crt_params_unpack(&x, NULL, 6, NULL, NULL) == CRT_ERR_NULL);
    EXPECT(crt_params_unpack(&x, to, 5, NULL, NULL) == CRT_ERR_SIZE);
    EXPECT(crt_params_unpack(&x, to, 6, NULL, NULL) == CRT_OK);
    EXPECT(memcmp(to, "\1\2\3\4\5\6", 6) == 0);
    EXPECT(crt_params_get(&p, 1, &x) == CRT_OK);
    EXPECT(crt_params_unpack(&x, ones, 16, NULL, NULL) == CRT_OK);
    for (i = 0; i < 4; i++)
        EXPECT(ones[i] == 1);
    EXPECT(crt_params_get(&p, 2, &x) == CRT_OK);
    EXPECT(crt_params_unpack(&x, to, 5, NULL, NULL) == CRT_ERR_CODEC);
    EXPECT(crt_params_unpack(&x, to, 5, twice, &answer) == CRT_OK);
    EXPECT(memcmp(to, "xyyzz", 5) == 0);
    answer = 1;
    EXPECT(crt_params_unpack(&x, to, 5, twice, &answer) == CRT_ERR_UNPACK);
}

static void test_unpack_all(void)
{
    static uint8_t memory[64] __attribute__((aligned(CRT_UNPACK_ALIGN)));
    struct crt_params p;
    struct crt_param x;
    int answer = 1;

    make();
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_OK);
    EXPECT(crt_params_unpacked_bytes(NULL) == 0);
    EXPECT(crt_params_unpacked_bytes(&p) == 32);
    EXPECT(crt_params_unpacked_at(&p, 1) == 0);
    EXPECT(crt_params_unpacked_at(&p, 2) == 16);
    EXPECT(crt_params_unpack_all(&p, memory, 32, NULL, NULL) == CRT_ERR_CODEC);
    EXPECT(crt_params_unpack_all(NULL, memory, 32, twice, &answer) ==
           CRT_ERR_NULL);
    EXPECT(crt_params_unpack_all(&p, NULL, 32, twice, &answer) == CRT_ERR_NULL);
    EXPECT(crt_params_unpack_all(&p, memory, 31, twice, &answer) ==
           CRT_ERR_SIZE);
    EXPECT(crt_params_unpack_all(&p, memory + 1, 32, twice, &answer) ==
           CRT_ERR_ALIGN);
    EXPECT(crt_params_unpack_all(&p, memory, 32, twice, &answer) ==
           CRT_ERR_UNPACK);
    EXPECT(crt_params_get(&p, 1, &x) == CRT_OK);
    EXPECT(x.codec == CRT_CODEC_LZ4); /* as before */
    answer = 0;
    EXPECT(crt_params_unpack_all(&p, memory, 32, twice, &answer) == CRT_OK);
    EXPECT(crt_params_get(&p, 0, &x) == CRT_OK && x.data == bytes + 192);
    EXPECT(crt_params_get(&p, 1, &x) == CRT_OK && x.data == memory);
    EXPECT(x.codec == CRT_CODEC_NONE && x.stored == 16);
    EXPECT(memcmp(memory, "\1\0\0\0\1", 5) == 0);
    EXPECT(crt_params_get(&p, 2, &x) == CRT_OK && x.data == memory + 16);
    EXPECT(memcmp(memory + 16, "xyyzz", 5) == 0);
    EXPECT(crt_params_unpack_all(&p, memory, 0, NULL, NULL) == CRT_OK);
}

/* What packed parameters say they unpack to must not wrap around. */
static void test_unpacked_bytes_are_no_overflow(void)
{
    static const uint32_t sizes[] = {0xffffffefu, 0xfffffff0u, 0xffffffffu};
    static uint8_t memory[64] __attribute__((aligned(CRT_UNPACK_ALIGN)));
    struct crt_params p;
    uint32_t i;

    for (i = 0; i < 3; i++) {
        make();
        put(ENTRY_B + 12, 4, 1); /* a layout: any size */
        put(ENTRY_B + 28, 4, sizes[i]);
        seal();
        EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_OK);
        EXPECT(crt_params_unpacked_bytes(&p) == UINT32_MAX);
        EXPECT(crt_params_unpack_all(&p, memory, 64, NULL, NULL) ==
               CRT_ERR_SIZE);
        EXPECT(crt_params_unpack_all(&p, memory, UINT32_MAX, NULL, NULL) ==
               CRT_ERR_SIZE);
    }
}

/* An image of no entries or one, that ends where its memory ends. */
static void test_headers_alone(void)
{
    struct crt_params p;
    uint8_t *image_only;

    make();
    put(12, 4, 40);
    put(16, 4, 0);
    put(4, 4, crt_crc32(0, bytes + 8, 32));
    EXPECT(crt_params_verify(&p, bytes, 40) == CRT_OK);
    EXPECT(crt_params_unpack_all(&p, NULL, 0, NULL, NULL) == CRT_ERR_NULL);
    put(10, 2, 12); /* an address of 16 has none of its bits, but 8 and 4 */
    put(4, 4, crt_crc32(0, bytes + 8, 32));
    EXPECT(crt_params_verify(&p, bytes, 40) == CRT_ERR_FORMAT);
    make(); /* negative, of what may have any size */
    put(ENTRY_C + 7, 1, 1);
    put(180, 4, 0x80000000u);
    seal();
    EXPECT(crt_params_verify(&p, bytes, TOTAL) == CRT_ERR_FORMAT);
    make(); /* so many entries that 40 * count is 24 in 32 bits */
    put(12, 4, 80);
    put(16, 4, 107374183u);
    entry(40, 72, 1, CRT_INT8, 0, 72);
    payload(40, 0, CRT_CODEC_NONE, 64, 1, 1);
    put(72, 8, 'a');
    put(4, 4, crt_crc32(0, bytes + 8, 72));
    image_only = (uint8_t *)malloc(80);
    EXPECT(image_only != NULL);
    if (image_only != NULL) {
        memcpy(image_only, bytes, 80);
        EXPECT(crt_params_verify(&p, image_only, 80) == CRT_ERR_FORMAT);
    }
    free(image_only);
}

/* A block, its length, and how many bytes it makes; -1: it is damaged. */
struct block {
    uint8_t bytes[32];
    uint32_t length;
    int32_t makes;
};

static const struct block blocks[] = {
    {{0}, 1, 0},
    {{0x50, 1, 2, 3, 4, 5}, 6, 5},
    {{0xf0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 19, 17},
    {{0x1f, 9, 1, 0, 255, 16, 0x50, 1, 2, 3, 4, 5}, 12, 296},
    {{0}, 0, -1},                      /* no token */
    {{0x30, 1, 2}, 3, -3},             /* 2 of 3 literals */
    {{0x40, 1, 2, 3, 4}, 5, -3},       /* 4 literals into 3 bytes */
    {{0xf0}, 1, -30},                  /* no rest of the length */
    {{0xf0, 255, 255}, 3, -600},       /* nor after 255s */
    {{0xf0, 20}, 2, -30},              /* 35 literals into 30 bytes */
    {{0xf0, 20}, 2, -10},              /* 15 are too many already */
    {{0x10, 1, 1}, 3, -30},            /* half a distance */
    {{0x10, 1, 1, 0}, 4, -4},          /* no room for a match */
    {{0x10, 1, 0, 0, 0}, 5, -30},      /* distance 0 */
    {{0x10, 1, 2, 0, 0}, 5, -30},      /* before the first byte */
    {{0x13, 1, 1, 0, 0}, 5, -7},       /* match of 7 into 6 bytes */
    {{0x1f, 1, 1, 0, 9, 0}, 6, -28},   /* match of 28 into 27 */
    {{0x1f, 1, 1, 0}, 4, -300},        /* no rest of the length */
    {{0x10, 1, 1, 0}, 4, -5},          /* no last literals */
    {{0x10, 1}, 2, -2},                /* 1 byte of 2 */
    {{0x10, 1, 0, 0, 0x10, 2}, 6, -6}, /* distance 0, all else is right */
    {{0xf0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}, 18, -8},
};

/* The same in memory of just these sizes: a sanitizer sees one byte more. */
static int unpacked_alone(const struct block *b, size_t room)
{
    uint8_t *from = (uint8_t *)malloc(b->length + (b->length == 0));
    uint8_t *to = (uint8_t *)malloc(room + (room == 0));
    int error = CRT_ERR_NULL;

    if (from != NULL && to != NULL) {
        memcpy(from, b->bytes, b->length);
        error = crt_lz4_unpack(from, b->length, to, (uint32_t)room);
    }
    free(from);
    free(to);
    return error;
}

static void test_lz4(void)
{
    uint8_t to[700];
    uint32_t i;
    int32_t n;

    for (i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct block *b = &blocks[i];

        memset(to, 0xa5, sizeof to);
        n = b->makes < 0 ? -b->makes : b->makes;
        EXPECT(crt_lz4_unpack(b->bytes, b->length, to, (uint32_t)n) ==
               (b->makes < 0 ? CRT_ERR_UNPACK : CRT_OK));
        EXPECT(to[n] == 0xa5);
        EXPECT(unpacked_alone(b, (size_t)n) ==
               (b->makes < 0 ? CRT_ERR_UNPACK : CRT_OK));
    }
    EXPECT(crt_lz4_unpack(blocks[3].bytes, 12, to, 296) == CRT_OK);
    for (n = 0; n < 291; n++)
        EXPECT(to[n] == 9);
    EXPECT(memcmp(to + 291, "\1\2\3\4\5", 5) == 0);
    EXPECT(crt_lz4_unpack(NULL, 1, to, 0) == CRT_ERR_NULL);
    EXPECT(crt_lz4_unpack(blocks[0].bytes, 1, NULL, 0) == CRT_ERR_NULL);
}

int main(void)
{
    test_crc();
    test_what_there_is();
    test_nothing_is_in_what_was_refused();
    test_damaged_fields();
    test_types_and_sizes();
    test_wrong_bytes();
    test_unpack();
    test_unpack_all();
    test_unpacked_bytes_are_no_overflow();
    test_headers_alone();
    test_lz4();
    return failures != 0;
}
