/* Mutates parameter images, for as many seconds as asked for, from a fixed
 * seed, and does all that a program may do with each: to be run under ASan and
 * UBSan. Usage: fuzz SECONDS IMAGE... Prints what it did; exit code 2 when it
 * never got past the checks, so that it tried nothing. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include "crt/crc.h"
#include "crt/lz4.h"
#include "crt/unpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BYTES = 1 << 16, ALIGN = 64, ROUNDS = 256 };

static uint32_t state = 2463534242u;
static unsigned long tried, accepted, unpacked, refused;

static uint32_t chance(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

static uint32_t interesting(void)
{
    static const uint32_t values[] = {
        0,          1,          3,          4,           15,
        16,         40,         80,         255,         256,
        65535,      0x7fffffff, 0x80000000, 0xfffffff0u, 0xffffffffu,
        0x40000000, 0x01000001,
    };

    return values[chance(sizeof values / sizeof *values)];
}

/* One small change; most are in the header and the table. */
static void mutate(uint8_t *data, size_t size)
{
    size_t near = chance(3) ? (size < 200 ? size : 200) : size;
    size_t at = chance((uint32_t)near);
    uint32_t value = chance(2) ? interesting() : chance((uint32_t)size + 4);
    size_t i;

    switch (chance(4)) {
    case 0:
        data[at] ^= (uint8_t)(1u << chance(8));
        break;
    case 1:
        data[at] = (uint8_t)chance(256);
        break;
    case 2:
        at &= ~(size_t)3;
        for (i = at; i < at + 4 && i < size; i++, value >>= 8)
            data[i] = (uint8_t)value;
        break;
    default:
        at &= ~(size_t)1;
        for (i = at; i < at + 2 && i < size; i++, value >>= 8)
            data[i] = (uint8_t)value;
    }
}

/* Makes the checksum true again, where the size lets it. */
static void seal(uint8_t *data, size_t size)
{
    uint32_t total = 0;
    uint32_t crc;
    int i;

    if (size < 40)
        return;
    for (i = 3; i >= 0; i--)
        total = total << 8 | data[12 + i];
    if (total < 40 || total > size)
        return;
    crc = crt_crc32(0, data + 8, total - 8);
    for (i = 0; i < 4; i++)
        data[4 + i] = (uint8_t)(crc >> (8 * i));
}

/* The user's codec: reads all it may and writes all it must. */
static int spread(void *context, uint16_t number, const void *from,
                  uint32_t from_bytes, void *to, uint32_t to_bytes)
{
    uint32_t sum = number + (context == NULL ? 0u : 1u);
    uint32_t i;

    for (i = 0; i < from_bytes; i++)
        sum += ((const uint8_t *)from)[i];
    memset(to, (int)(sum & 255u), to_bytes);
    return 0;
}

static void use(const struct crt_params *p)
{
    struct crt_param x;
    uint32_t sum = 0;
    uint32_t i;
    uint32_t d;

    for (i = 0; i < p->count; i++) {
        void *to;

        if (crt_params_get(p, i, &x) != CRT_OK)
            abort();
        if (crt_params_find(p, x.name) != (int)i)
            abort();
        for (d = 0; d < x.rank; d++)
            sum += (uint32_t)x.dims[d];
        sum += crt_crc32(0, x.data, x.stored);
        if (x.bytes > 16u * MAX_BYTES)
            continue;
        to = malloc(x.bytes + (x.bytes == 0));
        if (to == NULL)
            abort();
        if (crt_params_unpack(&x, to, x.bytes, spread, NULL) == CRT_OK)
            unpacked++;
        else
            refused++;
        free(to);
    }
    tried += sum == 1; /* so that nothing above is left out */
}

/* On a copy that ends where its memory ends: ASan sees one byte more. */
static void try_one(const uint8_t *data, size_t size)
{
    struct crt_params p;
    void *copy;

    if (posix_memalign(&copy, ALIGN, size) != 0)
        abort();
    memcpy(copy, data, size);
    tried++;
    if (crt_params_verify(&p, copy, size) == CRT_OK) {
        accepted++;
        use(&p);
    }
    free(copy);
}

static size_t load(const char *path, uint8_t *data)
{
    FILE *file = fopen(path, "rb");
    size_t size;

    if (file == NULL)
        exit(1);
    size = fread(data, 1, MAX_BYTES, file);
    fclose(file);
    return size;
}

static void fuzz(const uint8_t *seed, size_t size)
{
    static uint8_t data[MAX_BYTES];
    uint32_t changes;
    int round;

    for (round = 0; round < ROUNDS; round++) {
        memcpy(data, seed, size);
        for (changes = chance(4); changes > 0; changes--)
            mutate(data, size);
        if (chance(8) != 0)
            seal(data, size);
        try_one(data, chance(8) ? size : chance((uint32_t)size) + 1);
    }
}

int main(int argc, char **argv)
{
    static uint8_t seed[MAX_BYTES];
    time_t end;
    int i;

    if (argc < 3)
        return 1;
    end = time(NULL) + atoi(argv[1]);
    do {
        for (i = 2; i < argc; i++)
            fuzz(seed, load(argv[i], seed));
    } while (time(NULL) < end);
    printf("%lu tried, %lu accepted, %lu unpacked, %lu refused\n", tried,
           accepted, unpacked, refused);
    return accepted > 0 && unpacked > 0 && refused > 0 ? 0 : 2;
}
