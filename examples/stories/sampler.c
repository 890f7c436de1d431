/* sampler.c: as sampler.py has it. */
#include "sampler.h"

#include "odds_table.h"

void sampler_start(struct sampler *s, uint32_t seed, uint32_t temperature)
{
    s->state = seed != 0u ? seed : 1u;
    s->steps = temperature != 0u ? 1600.0f / (float)temperature : 0.0f;
}

/* Marsaglia's xorshift32. */
static uint32_t drawn(struct sampler *s)
{
    s->state ^= s->state << 13;
    s->state ^= s->state >> 17;
    s->state ^= s->state << 5;
    return s->state;
}

static uint32_t likeliest(const float *logits, uint32_t count)
{
    uint32_t best = 0;
    uint32_t i;

    for (i = 1; i < count; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* exp(-distance), in 65535ths. */
static uint32_t odds_of(float distance, float steps)
{
    const float at = distance * steps;

    return at < (float)ODDS ? odds[(uint32_t)at] : 0u;
}

uint16_t sampler_next(struct sampler *s, const float *logits, uint32_t count)
{
    const uint32_t best = likeliest(logits, count);
    uint32_t total = 0;
    uint32_t i;

    if (s->steps > 0.0f) {
        for (i = 0; i < count; i++) {
            total += odds_of(logits[best] - logits[i], s->steps);
        }
        total = (uint32_t)(((uint64_t)drawn(s) * total) >> 32);
        for (i = 0; i < count; i++) {
            const uint32_t part = odds_of(logits[best] - logits[i], s->steps);

            if (total < part) {
                return (uint16_t)i;
            }
            total -= part;
        }
    }
    return (uint16_t)best;
}
