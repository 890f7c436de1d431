/* test_finite.c: numbers that are none are found wherever they stand. */
#include "crt/finite.h"
#include "expect.h"

#define COUNT 7u

int main(void)
{
    /* the least and the greatest of what is finite, of either sign */
    static const int32_t good[] = {0, 1, 0x7F7FFFFF, INT32_MIN, -0x800001};
    static const int32_t bad[] = {0x7F800000, -0x800000, 0x7FC00000,
                                  0x7F800001, -0x400000, -1};
    static const uint16_t good16[] = {0, 1, 0x7BFF, 0x8000, 0xFBFF};
    static const uint16_t bad16[] = {0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF};
    float values[COUNT];
    uint16_t halves[COUNT];
    uint32_t i, at;
    for (i = 0; i < COUNT; i++) {
        values[i] = crt_int32_as_float32(good[i % 5u]);
        halves[i] = good16[i % 5u];
    }
    EXPECT(crt_all_finite(values, COUNT) == 1);
    EXPECT(crt_all_finite16(halves, COUNT) == 1);
    EXPECT(crt_all_finite(NULL, 0) == 1);
    EXPECT(crt_all_finite16(NULL, 0) == 1);
    for (at = 0; at < COUNT; at++) {
        for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            values[at] = crt_int32_as_float32(bad[i]);
            EXPECT(crt_all_finite(values, COUNT) == 0);
            EXPECT(crt_all_finite(values, at) == 1);
        }
        for (i = 0; i < sizeof bad16 / sizeof bad16[0]; i++) {
            halves[at] = bad16[i];
            EXPECT(crt_all_finite16(halves, COUNT) == 0);
            EXPECT(crt_all_finite16(halves, at) == 1);
        }
        values[at] = crt_int32_as_float32(good[at % 5u]);
        halves[at] = good16[at % 5u];
    }
    return failures != 0;
}
