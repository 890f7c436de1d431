/* tokens.h: text as tokens, and back. The pairs that tokens stand for are in
 * tokens_table.h. Knows no model. */
#ifndef TOKENS_H
#define TOKENS_H

#include <stdint.h>

#define TOKENS_BEGIN 0 /* of a story; so ends the one before */
#define TOKENS_BYTES 256

/* Joins bytes to tokens, in place: the earliest pair that occurs, wherever it
 * stands, until none does. tokens: one for each byte. Gives how many are left.
 */
uint32_t tokens_encode(uint16_t *tokens, uint32_t count);

/* Writes the bytes of a token. */
void tokens_write(uint16_t token, void (*put)(uint8_t byte));

#endif
