/* libgcc_xtensa.c: functions of the compiler's run time that GNU C for LX106
 * leaves to the boot ROM of the ESP8266: division, long products, single
 * floats, rounded to nearest even. Knows no board. */
#include <stdint.h>

uint32_t __udivsi3(uint32_t a, uint32_t b);
uint32_t __umodsi3(uint32_t a, uint32_t b);
int32_t __divsi3(int32_t a, int32_t b);
uint64_t __udivdi3(uint64_t a, uint64_t b);
uint64_t __umoddi3(uint64_t a, uint64_t b);
int64_t __divdi3(int64_t a, int64_t b);
int64_t __moddi3(int64_t a, int64_t b);
uint64_t __umulsidi3(uint32_t a, uint32_t b);
int64_t __muldi3(int64_t a, int64_t b);
float __addsf3(float a, float b);
float __subsf3(float a, float b);
float __mulsf3(float a, float b);
float __floatsisf(int32_t value);
float __floatunsisf(uint32_t value);
uint32_t __fixunssfsi(float value);

/* By zero: all bits, as RISC-V has it; C leaves it open. */
static uint32_t divided(uint32_t a, uint32_t b, uint32_t *rest)
{
    uint32_t high = 0;
    int i;

    for (i = 0; i < 32; i++) {
        const uint32_t out = high >> 31;

        high = high << 1 | a >> 31;
        a <<= 1;
        if (out != 0 || high >= b) {
            high -= b;
            a |= 1u;
        }
    }
    *rest = high;
    return a;
}

uint32_t __udivsi3(uint32_t a, uint32_t b)
{
    uint32_t rest;

    return divided(a, b, &rest);
}

uint32_t __umodsi3(uint32_t a, uint32_t b)
{
    uint32_t rest;

    divided(a, b, &rest);
    return rest;
}

int32_t __divsi3(int32_t a, int32_t b)
{
    const uint32_t size = __udivsi3(a < 0 ? 0u - (uint32_t)a : (uint32_t)a,
                                    b < 0 ? 0u - (uint32_t)b : (uint32_t)b);

    return (int32_t)((a < 0) != (b < 0) ? 0u - size : size);
}

static uint64_t divided_long(uint64_t a, uint64_t b, uint64_t *rest)
{
    uint64_t high = 0;
    int i;

    for (i = 0; i < 64; i++) {
        const uint64_t out = high >> 63;

        high = high << 1 | a >> 63;
        a <<= 1;
        if (out != 0 || high >= b) {
            high -= b;
            a |= 1u;
        }
    }
    *rest = high;
    return a;
}

uint64_t __udivdi3(uint64_t a, uint64_t b)
{
    uint64_t rest;

    return divided_long(a, b, &rest);
}

uint64_t __umoddi3(uint64_t a, uint64_t b)
{
    uint64_t rest;

    divided_long(a, b, &rest);
    return rest;
}

static uint64_t size_of(int64_t a)
{
    return a < 0 ? 0u - (uint64_t)a : (uint64_t)a;
}

int64_t __divdi3(int64_t a, int64_t b)
{
    const uint64_t size = __udivdi3(size_of(a), size_of(b));

    return (int64_t)((a < 0) != (b < 0) ? 0u - size : size);
}

int64_t __moddi3(int64_t a, int64_t b)
{
    const uint64_t rest = __umoddi3(size_of(a), size_of(b));

    return (int64_t)(a < 0 ? 0u - rest : rest);
}

/* Of four products of 16 bits: the LX106 has no longer result. */
uint64_t __umulsidi3(uint32_t a, uint32_t b)
{
    const uint32_t low = (a & 0xFFFFu) * (b & 0xFFFFu);
    const uint32_t left = (a >> 16) * (b & 0xFFFFu);
    const uint32_t right = (a & 0xFFFFu) * (b >> 16);
    const uint32_t middle = (low >> 16) + (left & 0xFFFFu) + (right & 0xFFFFu);
    const uint32_t high =
        (a >> 16) * (b >> 16) + (left >> 16) + (right >> 16) + (middle >> 16);

    return (uint64_t)high << 32 | (middle << 16 | (low & 0xFFFFu));
}

int64_t __muldi3(int64_t a, int64_t b)
{
    const uint32_t al = (uint32_t)a, bl = (uint32_t)b;
    const uint32_t ah = (uint32_t)((uint64_t)a >> 32);
    const uint32_t bh = (uint32_t)((uint64_t)b >> 32);

    return (int64_t)(__umulsidi3(al, bl) +
                     ((uint64_t)(al * bh + ah * bl) << 32));
}

/* ---- floats: sign, exponent of 8 bits, fraction of 23 ---------------------
 */

union bits {
    float value;
    uint32_t word;
};

#define SIGN     0x80000000u
#define INFINITE 0x7F800000u
#define QUIET    0x7FC00000u
#define ONE      0x00800000u /* the bit that is not written */

static uint32_t word_of(float value)
{
    const union bits b = {.value = value};

    return b.word;
}

static float float_of(uint32_t word)
{
    union bits b;

    b.word = word;
    return b.value;
}

/* The fraction with its leading one, and the exponent of its last bit. */
static uint32_t taken_apart(uint32_t word, int *exponent)
{
    const int e = (int)(word >> 23 & 0xFFu);
    const uint32_t fraction = word & (ONE - 1u);

    *exponent = e == 0 ? 1 : e;
    return e == 0 ? fraction : fraction | ONE;
}

/* sign | the float nearest to value * 2^(exponent - 150 - 32). */
static float rounded(uint32_t sign, int exponent, uint64_t value)
{
    uint32_t fraction, rest;

    if (value == 0)
        return float_of(sign);
    while (value >> 56 != 0) {
        value = value >> 1 | (value & 1u);
        exponent++;
    }
    while (value >> 55 == 0 && exponent > 1) {
        value <<= 1;
        exponent--;
    }
    while (exponent < 1) {
        value = value >> 1 | (value & 1u);
        exponent++;
    }
    fraction = (uint32_t)(value >> 32);
    rest = (uint32_t)value;
    if (fraction < ONE)
        exponent = 0;
    if (exponent >= 255)
        return float_of(sign | INFINITE);
    fraction = ((uint32_t)exponent << 23) + (fraction & (ONE - 1u));
    if (rest > SIGN || (rest == SIGN && (fraction & 1u) != 0))
        fraction++; /* into the exponent, too, where that is right */
    return float_of(sign | fraction);
}

static int is_nan(uint32_t word)
{
    return (word & ~SIGN) > INFINITE;
}

float __addsf3(float a, float b)
{
    uint32_t x = word_of(a), y = word_of(b);
    uint64_t large, small;
    int ex, ey;

    if (is_nan(x) || is_nan(y))
        return float_of(QUIET);
    if ((x & ~SIGN) < (y & ~SIGN)) {
        const uint32_t other = x;

        x = y;
        y = other;
    }
    if ((x & ~SIGN) == INFINITE)
        return float_of((y & ~SIGN) == INFINITE && x != y ? QUIET : x);
    large = (uint64_t)taken_apart(x, &ex) << 32;
    small = (uint64_t)taken_apart(y, &ey) << 32;
    if (ex - ey > 40)
        small = small != 0;
    else if (ex > ey)
        small = small >> (ex - ey) |
                ((small & (((uint64_t)1 << (ex - ey)) - 1u)) != 0);
    if (((x ^ y) & SIGN) == 0)
        return rounded(x & SIGN, ex, large + small);
    /* a difference of zero has the sign plus */
    return rounded(large == small ? 0 : x & SIGN, ex, large - small);
}

float __subsf3(float a, float b)
{
    return __addsf3(a, float_of(word_of(b) ^ SIGN));
}

float __mulsf3(float a, float b)
{
    const uint32_t x = word_of(a), y = word_of(b), sign = (x ^ y) & SIGN;
    uint32_t fx, fy;
    int ex, ey;

    if (is_nan(x) || is_nan(y))
        return float_of(QUIET);
    if ((x & ~SIGN) == INFINITE || (y & ~SIGN) == INFINITE)
        return float_of((x & ~SIGN) == 0 || (y & ~SIGN) == 0 ? QUIET
                                                             : sign | INFINITE);
    fx = taken_apart(x, &ex);
    fy = taken_apart(y, &ey);
    /* 46 bits of fraction, where `rounded` has 55 */
    return rounded(sign, ex + ey - 127 - 23 + 32, __umulsidi3(fx, fy));
}

float __floatunsisf(uint32_t value)
{
    return rounded(0, 150 + 32, value);
}

float __floatsisf(int32_t value)
{
    const uint32_t sign = value < 0 ? SIGN : 0;

    return rounded(sign, 150 + 32,
                   value < 0 ? 0u - (uint32_t)value : (uint32_t)value);
}

/* Of values that fit; of others, as of negative ones, C leaves it open. */
uint32_t __fixunssfsi(float value)
{
    const uint32_t word = word_of(value);
    const int exponent = (int)(word >> 23 & 0xFFu) - 150;
    const uint32_t fraction = (word & (ONE - 1u)) | ONE;

    if ((word & SIGN) != 0 || exponent < -23)
        return 0;
    return exponent < 0 ? fraction >> -exponent : fraction << exponent;
}
