/* expect.h: what the C tests count and print: a failed line, and how many. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>

static int failures;

#define EXPECT(x)                                                              \
    do {                                                                       \
        if (!(x)) {                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #x);                     \
            failures++;                                                        \
        }                                                                      \
    } while (0)

#endif
