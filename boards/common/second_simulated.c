/* second_simulated.c: a second core that no chip's register starts, but the
 * simulator: where it finds these vectors. No bell: cores look at memory. */
#include "second.h"

const void *volatile board_second_vectors;

void board_second_release(const void *vectors)
{
    board_second_vectors = vectors;
}

void board_second_ring(int second)
{
    (void)second;
}

BOARD_WAITING void board_second_rest(int second)
{
    (void)second;
}
