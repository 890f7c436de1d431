/* sampler.h: which token comes next, by its logit and by chance. The same
 * numbers everywhere: floats are subtracted and multiplied, all else is
 * integers. Knows no model. */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <stdint.h>

struct sampler {
    uint32_t state; /* of the random numbers; not 0 */
    float steps;    /* 16ths of a logit at this temperature; 0: no chance */
};

/* temperature: in hundredths; 0: always the likeliest. */
void sampler_start(struct sampler *s, uint32_t seed, uint32_t temperature);

/* The next token. */
uint16_t sampler_next(struct sampler *s, const float *logits, uint32_t count);

#endif
