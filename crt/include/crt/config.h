/* crt/config.h: every setting of crt, here and nowhere else.
 * Knows no other header. Give your own values with -D, or in a file of yours
 * that -DCRT_CONFIG_FILE='"my_crt.h"' names; all files of one program must
 * see the same values. */
#ifndef CRT_CONFIG_H
#define CRT_CONFIG_H

/* Features leave by name; undefined (the default) means present:
 *
 * CRT_NO_HOOK      leaves out crt_graph_set_hook and the call of the hook:
 *                  saves 8 bytes of RAM per instance and about 120 of flash,
 *                  costs per-layer checking and timing on the device
 * CRT_NO_RPC       leaves out the server of crt/rpc.h; it is not linked anyway
 *                  where nothing calls it
 * CRT_NO_NAMES     leaves out the names of models, inputs and outputs: tensors
 *                  are then found by their numbers, CRT_ERR_NAME by name
 * CRT_NO_STRING_H  does not include <string.h>: crt copies byte by byte,
 *                  for tool chains without a C library
 * CRT_NO_OVERLAP   does not compare bound pointers with the memory of models,
 *                  for CRT_ERR_OVERLAP: saves about 310 bytes of flash where
 *                  something is bound, 190 more and the RAM of
 *                  CRT_TURN_REGIONS where instances share memory
 * CRT_NO_ASM       leaves inline assembly out of kernels: for rules and for
 *                  checkers that allow none; the same values, in C and in the
 *                  compiler's own functions for vectors, more slowly */

#ifdef CRT_CONFIG_FILE
#include CRT_CONFIG_FILE
#endif

/* Attributes of every array of weights, to place them: for example
 * __attribute__((section(".weights"))). Empty: with the other constants. */
#ifndef CRT_SECTION_WEIGHTS
#define CRT_SECTION_WEIGHTS
#endif

/* Regions of memory that instances share by one struct crt_turn, 1 to 255; 8
 * bytes of RAM each. */
#ifndef CRT_TURN_REGIONS
#define CRT_TURN_REGIONS 4
#endif
#if CRT_TURN_REGIONS < 1 || CRT_TURN_REGIONS > 255
#error "CRT_TURN_REGIONS must be 1 to 255"
#endif

/* Instances, images and buffers that the server of crt/rpc.h can hold at a
 * time, 2 to 1000; 12 bytes of RAM each. */
#ifndef CRT_RPC_OBJECTS
#define CRT_RPC_OBJECTS 16
#endif
#if CRT_RPC_OBJECTS < 2 || CRT_RPC_OBJECTS > 1000
#error "CRT_RPC_OBJECTS must be 2 to 1000"
#endif

#if !defined(__cplusplus) &&                                                   \
    (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "crt needs C99 or newer: compile it with -std=c99"
#endif

#endif
