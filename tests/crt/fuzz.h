/* fuzz.h: what libFuzzer and a fuzz target ask of each other. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The target's; the first returns 0, the second the new size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

/* libFuzzer's, or fuzz_driver.c's: changes data a little; the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

#endif
