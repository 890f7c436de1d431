/* Fuzz target: all that a program may do with a parameter image, under ASan and
 * UBSan. For libFuzzer, or for fuzz_driver.c where there is none. Prints at
 * exit how many images were tried, and what became of them. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include "crt/crc.h"
#include "crt/lz4.h"
#include "crt/unpack.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNPACKED = 1 << 20, ALIGN = 64 };

static unsigned long tried, accepted, unpacked, refused;

static void print_counts(void)
{
    fprintf(stderr, "%lu tried, %lu accepted, %lu unpacked, %lu refused\n",
            tried, accepted, unpacked, refused);
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

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, most);
    if (seed % 8 != 0)
        seal(data, size);
    return size;
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
        if (x.bytes > MAX_UNPACKED)
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

/* As firmware does: all at once, where there is memory for it. */
static void use_all(struct crt_params *p)
{
    uint32_t bytes = crt_params_unpacked_bytes(p);
    void *memory;

    if (bytes > MAX_UNPACKED)
        return;
    if (posix_memalign(&memory, ALIGN, bytes + (bytes == 0)) != 0)
        abort();
    if (crt_params_unpack_all(p, memory, bytes, spread, NULL) == CRT_OK)
        use(p);
    free(memory);
}

/* On an aligned copy that ends where its memory ends. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct crt_params p;
    void *copy;

    if (tried++ == 0)
        atexit(print_counts);
    if (size == 0)
        return 0;
    if (posix_memalign(&copy, ALIGN, size) != 0)
        abort();
    memcpy(copy, data, size);
    if (crt_params_verify(&p, copy, size) == CRT_OK) {
        accepted++;
        use(&p);
        use_all(&p);
    }
    free(copy);
    return 0;
}
