/* Arrays with checksums and copies: whole passes, slices, and what is found
 * when a bit of anything flips. */
#include "expect.h"

#include "crt/crc.h"
#include "crt/verify.h"

#include <string.h>

static uint8_t first[6] = {1, 2, 3, 4, 5, 6};
static uint8_t second[3] = {9, 8, 7};
static const void *table[2] = {first, second};
static const void *again[2] = {first, second};
static struct crt_sum sums[3];
static struct crt_sum same[3];
static struct crt_sums both[2];

#define TABLE ((uint32_t)sizeof table)
#define PASS  (TABLE + 9u)

static void begin(void)
{
    sums[0].data = table;
    sums[0].copy = again;
    sums[0].bytes = TABLE;
    sums[1].data = first;
    sums[1].bytes = 6;
    sums[1].crc = crt_crc32(0, first, 6);
    sums[2].data = second;
    sums[2].bytes = 3;
    sums[2].crc = crt_crc32(0, second, 3);
    memcpy(same, sums, sizeof sums);
    both[0].sums = sums;
    both[0].again = same;
    both[0].count = 3;
    both[1] = both[0];
}

static void test_passes(void)
{
    struct crt_verify state = {0, 0, 0, 0};
    uint32_t size;
    uint32_t i;

    EXPECT(crt_model_verify(NULL, NULL, 0) == CRT_ERR_NULL);
    EXPECT(crt_model_verify(both, NULL, 0) == CRT_OK);
    EXPECT(crt_model_verify(both, &state, 0) == CRT_OK);
    EXPECT(state.next == 0 && state.at == 0);
    for (size = 1; size <= PASS; size++) {
        const uint32_t before = state.passes;

        for (i = 0; i < PASS; i += size) {
            EXPECT(state.passes == before);
            EXPECT(crt_model_verify(both, &state, size) == CRT_OK);
        }
        EXPECT(state.passes == before + 1u);
    }
    EXPECT(crt_model_verify(both, &state, 1000) == CRT_OK);
    EXPECT(state.passes == PASS + 1u && state.next == 3);
}

/* Each bit, by a whole pass, and in slices of two bytes, of which one finds
 * it, and the others what is right. */
static void flips(void *data, size_t bytes)
{
    uint8_t *at = (uint8_t *)data;
    size_t bit;

    for (bit = 0; bit < 8 * bytes; bit++) {
        struct crt_verify state = {0, 0, 0, 0};
        uint32_t found = 0;
        uint32_t i;

        at[bit / 8] ^= (uint8_t)(1u << (bit & 7u));
        EXPECT(crt_model_verify(both, NULL, 0) == CRT_ERR_CHECKSUM);
        for (i = 0; i <= PASS && state.passes == 0u; i += 2) {
            found += crt_model_verify(both, &state, 2) == CRT_ERR_CHECKSUM;
        }
        EXPECT(found > 0u);
        at[bit / 8] ^= (uint8_t)(1u << (bit & 7u));
    }
    EXPECT(crt_model_verify(both, NULL, 0) == CRT_OK);
}

static void test_flips(void)
{
    flips(first, sizeof first);
    flips(second, sizeof second);
    flips(table, sizeof table);
    flips(again, sizeof again);
    flips(sums, sizeof sums);
    flips(same, sizeof same);
    flips(both, sizeof both);
}

/* A state whose own bits have flipped leads nowhere. */
static void test_state(void)
{
    struct crt_verify state = {77, 5, 3, 0};

    EXPECT(crt_model_verify(both, &state, 1) == CRT_OK);
    EXPECT(state.next == 0 && state.at == 1);
    state.at = TABLE;
    EXPECT(crt_model_verify(both, &state, 1) == CRT_OK);
    EXPECT(state.next == 0 && state.at == 1);
    state.at = 0xFFFFFFFFu;
    EXPECT(crt_model_verify(both, &state, 1000) == CRT_OK);
    state.next = 1;
    state.crc = 1;
    EXPECT(crt_model_verify(both, &state, 6) == CRT_ERR_CHECKSUM);
    EXPECT(state.next == 2);
    state.next = 2;
    state.crc = 1;
    state.passes = 0;
    EXPECT(crt_model_verify(both, &state, 3) == CRT_ERR_CHECKSUM);
    EXPECT(state.next == 3 && state.passes == 1);
}

int main(void)
{
    begin();
    test_passes();
    test_flips();
    test_state();
    return failures != 0;
}
