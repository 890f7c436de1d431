/* board.h: what start-up, ticks and semihosting share, the same on all boards.
 * Knows no board and no model. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* Exit code of a processor fault: a wrong address or instruction. */
#define BOARD_FAULT 99

/* The interrupt behind crt_port_ticks on Cortex-M. */
void board_ticked(void);

/* Calls a function that takes one pointer and gives an int; the simulators
 * count from its first instruction to the label board_returned. */
typedef void board_function(void);
int board_call(board_function *function, void *argument);

/* Files of the host, through the debugger or simulator (semihosting).
 *
 * Units   bytes
 * Errors  a negative handle or count */
int32_t board_open(const char *name, int for_writing);
int32_t board_read(int32_t file, void *data, uint32_t bytes);
int32_t board_write(int32_t file, const void *data, uint32_t bytes);
void board_close(int32_t file);

/* A byte for the console of the debugger or simulator. */
void board_put(uint8_t byte);

/* The next byte of a file that is read. */
void board_seek(int32_t file, uint32_t at);

#endif
