/* Fuzz target: LZ4 blocks, unpacked into exactly as many bytes as the first
 * two of the input say. For libFuzzer or fuzz_driver.c, under ASan and UBSan.
 * Prints at exit how many were tried, and what became of them. */
#include "crt/error.h"
#include "crt/lz4.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned long tried, unpacked, refused;

static void print_counts(void)
{
    fprintf(stderr, "%lu tried, %lu unpacked, %lu refused\n", tried, unpacked,
            refused);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t bytes;
    void *to;
    int error;

    if (tried++ == 0)
        atexit(print_counts);
    if (size < 2)
        return 0;
    bytes = (uint32_t)data[0] | (uint32_t)data[1] << 8;
    to = malloc(bytes + (bytes == 0));
    if (to == NULL)
        abort();
    error = crt_lz4_unpack(data + 2, (uint32_t)(size - 2), to, bytes);
    if (error == CRT_OK)
        unpacked++;
    else if (error == CRT_ERR_UNPACK)
        refused++;
    else
        abort();
    free(to);
    return 0;
}
