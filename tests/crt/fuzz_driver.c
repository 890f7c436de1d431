/* Runs a fuzz target where there is no libFuzzer: mutates the given files, for
 * as many seconds as asked for, from a fixed seed. Usage: fuzz SECONDS FILE...
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BYTES = 1 << 16, ROUNDS = 256 };

static uint32_t state = 2463534242u;

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

/* One small change; most are near the beginning. */
static void change(uint8_t *data, size_t size)
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

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    uint32_t changes;

    for (changes = chance(4); changes > 0; changes--)
        change(data, size);
    size = chance(8) ? size : chance((uint32_t)size) + 1;
    return size < most ? size : most;
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

/* Each on a copy that ends where its memory ends: ASan sees one byte more. */
static void fuzz(const uint8_t *seed, size_t size)
{
    static uint8_t data[MAX_BYTES];
    int round;

    for (round = 0; round < ROUNDS; round++) {
        size_t now;
        uint8_t *copy;

        memcpy(data, seed, size);
        now = LLVMFuzzerCustomMutator(data, size, MAX_BYTES, chance(1u << 16));
        copy = (uint8_t *)malloc(now);
        if (copy == NULL)
            exit(1);
        memcpy(copy, data, now);
        LLVMFuzzerTestOneInput(copy, now);
        free(copy);
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
    return 0;
}
