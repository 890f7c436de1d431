/* second.h: a second core that sees the same flash and RAM as the first: as a
 * device of crt (crt/device.h; second.c: jobs go through a queue in RAM, and a
 * bell), or as an equal core of a run (crt/cores.h; runner.c).
 * Knows no chip: the bell is in second_<chip>.c. */
#ifndef SECOND_H
#define SECOND_H

#include "crt/graph.h"

/* Code that both cores run while they have nothing to do: what simulators count
 * as waiting. */
#define BOARD_WAITING __attribute__((noinline, section(".text.board_waiting")))

/* The device: copies and steps are done by the second core, in their order.
 * Its context is not used: there is one second core.
 *
 * Errors  CRT_ERR_DEVICE of a run: the second core has met a fault; it then
 *         does nothing more */
extern const struct crt_device_api board_second;

/* Starts the second core; once, before the first run.
 *
 * Shapes  pointers[model->pointer_count] of the largest model
 * Owner   the second core's from now on */
void board_second_start(void **pointers);

/* Starts the second core with board_second_work(): what it does for ever. */
void board_second_begin(void);
void board_second_work(void);

/* Not 0: the second core has met a fault, and does nothing more. */
extern volatile uint32_t board_second_faulted;

/* ---- of the chip --------------------------------------------------------- */

/* Lets the second core begin, with these vectors. */
void board_second_release(const void *vectors);

/* Either core wakes the other; all that it has written is seen before. */
void board_second_ring(int second);

/* Sleeps until the other core rings, or has; may return sooner. */
void board_second_rest(int second);

#endif
