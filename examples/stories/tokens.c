/* tokens.c: byte pairs, as tokens.py has them. */
#include "tokens.h"

#include "tokens_table.h"

#define NONE PAIRS

/* The number of a pair; NONE: it is none. */
static uint32_t pair_of(uint16_t left, uint16_t right)
{
    uint32_t i = 0;

    while (i < PAIRS && (pairs[i][0] != left || pairs[i][1] != right)) {
        i++;
    }
    return i;
}

/* The earliest pair that occurs. */
static uint32_t earliest(const uint16_t *tokens, uint32_t count)
{
    uint32_t first = NONE;
    uint32_t i;

    for (i = 1; i < count; i++) {
        const uint32_t found = pair_of(tokens[i - 1u], tokens[i]);

        first = found < first ? found : first;
    }
    return first;
}

uint32_t tokens_encode(uint16_t *tokens, uint32_t count)
{
    uint32_t pair = earliest(tokens, count);

    while (pair != NONE) {
        uint32_t left = 0;
        uint32_t i;

        for (i = 0; i < count; i++) {
            if (left > 0u && tokens[left - 1u] == pairs[pair][0] &&
                tokens[i] == pairs[pair][1]) {
                tokens[left - 1u] = (uint16_t)(TOKENS_BYTES + pair);
            } else {
                tokens[left] = tokens[i];
                left++;
            }
        }
        count = left;
        pair = earliest(tokens, count);
    }
    return count;
}

void tokens_write(uint16_t token, void (*put)(uint8_t byte))
{
    /* a pair's first half may be a pair, and so on: at most PAIRS deep */
    uint16_t waiting[PAIRS + 1];
    uint32_t count = 1;

    waiting[0] = token;
    while (count > 0u) {
        const uint16_t next = waiting[--count];

        if (next >= TOKENS_BYTES) {
            waiting[count++] = pairs[next - TOKENS_BYTES][1];
            waiting[count++] = pairs[next - TOKENS_BYTES][0];
        } else if (next != TOKENS_BEGIN) {
            put((uint8_t)next);
        }
    }
}
