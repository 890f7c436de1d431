/* crt/little.h: refuses a core that stores the high byte of a word first.
 * Included where several elements are read as one word, the first in its low
 * bits, and where bytes are used as the host stored them. For such a core build
 * for the target generic, without packed or replaceable weights. */
#ifndef CRT_LITTLE_H
#define CRT_LITTLE_H

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "words are little-endian here: not for this core, see crt/little.h"
#endif
#elif defined(__ARM_BIG_ENDIAN) || defined(__BIG_ENDIAN__)
#error "words are little-endian here: not for this core, see crt/little.h"
#endif

#endif
