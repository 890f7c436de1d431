/* The run-time functions of libgcc_xtensa.c, renamed by -D, beside what this
 * machine computes. */
#include "libgcc_xtensa.c"

#include <stdio.h>

static uint64_t state = 88172645463325252u;

static uint64_t drawn(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#define SAME(own, other)                                                       \
    do {                                                                       \
        if ((own) != (other)) {                                                \
            printf("%s: %08x %08x\n", #own, (unsigned)x, (unsigned)y);         \
            return 1;                                                          \
        }                                                                      \
    } while (0)
/* floats: the same bits, or both no number */
#define ALIKE(own, other)                                                      \
    do {                                                                       \
        const float u = (own), v = (other);                                    \
                                                                               \
        if (u == u || v == v)                                                  \
            SAME(word_of(u), word_of(v));                                      \
    } while (0)

static int integers(uint32_t x, uint32_t y, uint64_t a, uint64_t b)
{
    const int64_t c = (int64_t)a, d = (int64_t)b;

    SAME(__udivsi3(x, y), x / y);
    SAME(__umodsi3(x, y), x % y);
    if (x != 0x80000000u)
        SAME(__divsi3((int32_t)x, (int32_t)y), (int32_t)x / (int32_t)y);
    SAME(__udivdi3(a, b), a / b);
    SAME(__umoddi3(a, b), a % b);
    SAME(__divdi3(c, d), c / d);
    SAME(__moddi3(c, d), c % d);
    SAME((uint64_t)__muldi3(c, d), a * b);
    SAME(__umulsidi3(x, y), (uint64_t)x * y);
    return 0;
}

static int floats(uint32_t x, uint32_t y)
{
    const float a = float_of(x), b = float_of(y);

    ALIKE(__addsf3(a, b), a + b);
    ALIKE(__subsf3(a, b), a - b);
    ALIKE(__mulsf3(a, b), a * b);
    ALIKE(__floatunsisf(x >> (y & 31u)), (float)(x >> (y & 31u)));
    ALIKE(__floatsisf((int32_t)x), (float)(int32_t)x);
    if (a >= 0 && a < 4e9f)
        SAME(__fixunssfsi(a), (uint32_t)a);
    return 0;
}

int main(void)
{
    int i;

    for (i = 0; i < 200000; i++) {
        const uint64_t how = drawn();
        uint64_t a = drawn() >> (how & 63u), b = drawn() >> (how >> 6 & 63u);
        uint32_t x = (uint32_t)a, y = (uint32_t)b;

        a = how >> 60 == 0 ? 0u - a : a;
        if (integers(x, y == 0 ? 1u : y, a, b == 0 ? 3u : b) != 0)
            return 1;
        x = (uint32_t)drawn();
        y = (uint32_t)drawn();
        if (how >> 12 & 1u) /* exponents that are near */
            y = (y & 0x807FFFFFu) | (x & 0x7F800000u);
        if ((how >> 13 & 15u) == 0)
            y = x ^ 0x80000000u;
        if ((how >> 17 & 15u) == 0) /* small ones, and zero */
            x &= 0x80FFFFFFu >> (how >> 25 & 7u);
        if ((how >> 21 & 15u) == 0) /* infinite */
            x &= 0xFF800000u;
        if (floats(x, y) != 0)
            return 1;
    }
    puts("equal");
    return 0;
}
