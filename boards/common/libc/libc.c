/* libc.c: the few functions of the C library that firmware here calls, so that
 * no tool chain needs one. Knows no board. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "crt/port.h"

/* These must not be turned into calls of themselves. */
#if defined(__clang__)
#define ALONE __attribute__((no_builtin, noinline))
#else
#define ALONE __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

#define IS_ALIGNED(p) (((uintptr_t)(p) & 3u) == 0)

ALONE static void copy(void *to, const void *from, size_t bytes)
{
    uint8_t *out = (uint8_t *)to;
    const uint8_t *in = (const uint8_t *)from;

    if (IS_ALIGNED(out) && IS_ALIGNED(in)) {
        for (; bytes >= 4; bytes -= 4, out += 4, in += 4)
            *(uint32_t *)(void *)out = *(const uint32_t *)(const void *)in;
    }
    while (bytes-- > 0)
        *out++ = *in++;
}

ALONE static void move(void *to, const void *from, size_t bytes)
{
    uint8_t *out = (uint8_t *)to;
    const uint8_t *in = (const uint8_t *)from;

    if ((uintptr_t)out - (uintptr_t)in >= bytes) {
        copy(to, from, bytes);
        return;
    }
    while (bytes-- > 0)
        out[bytes] = in[bytes];
}

ALONE static void fill(void *to, int value, size_t bytes)
{
    uint8_t *out = (uint8_t *)to;
    const uint32_t word = 0x01010101u * (uint8_t)value;

    for (; bytes > 0 && !IS_ALIGNED(out); bytes--)
        *out++ = (uint8_t)value;
    for (; bytes >= 4; bytes -= 4, out += 4)
        *(uint32_t *)(void *)out = word;
    while (bytes-- > 0)
        *out++ = (uint8_t)value;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    copy(to, from, bytes);
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    move(to, from, bytes);
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    fill(to, value, bytes);
    return to;
}

ALONE int memcmp(const void *a, const void *b, size_t bytes)
{
    const uint8_t *x = (const uint8_t *)a;
    const uint8_t *y = (const uint8_t *)b;

    for (; bytes > 0; bytes--, x++, y++) {
        if (*x != *y)
            return *x - *y;
    }
    return 0;
}

ALONE size_t strlen(const char *from)
{
    size_t count = 0;

    while (from[count] != '\0')
        count++;
    return count;
}

#if defined(__arm__)
/* What clang calls instead, by Arm's run-time ABI; aligned to 4 and 8 too. */
#define ALIASES(name)                                                          \
    void name##4(void *to, const void *from, size_t bytes)                     \
        __attribute__((alias(#name)));                                         \
    void name##8(void *to, const void *from, size_t bytes)                     \
        __attribute__((alias(#name)))

void __aeabi_memcpy(void *to, const void *from, size_t bytes);
void __aeabi_memmove(void *to, const void *from, size_t bytes);
void __aeabi_memset(void *to, size_t bytes, int value);
void __aeabi_memset4(void *to, size_t bytes, int value)
    __attribute__((alias("__aeabi_memset")));
void __aeabi_memset8(void *to, size_t bytes, int value)
    __attribute__((alias("__aeabi_memset")));
void __aeabi_memclr(void *to, size_t bytes);
void __aeabi_memclr4(void *to, size_t bytes)
    __attribute__((alias("__aeabi_memclr")));
void __aeabi_memclr8(void *to, size_t bytes)
    __attribute__((alias("__aeabi_memclr")));
ALIASES(__aeabi_memcpy);
ALIASES(__aeabi_memmove);

void __aeabi_memcpy(void *to, const void *from, size_t bytes)
{
    copy(to, from, bytes);
}

void __aeabi_memmove(void *to, const void *from, size_t bytes)
{
    move(to, from, bytes);
}

void __aeabi_memset(void *to, size_t bytes, int value)
{
    fill(to, value, bytes);
}

void __aeabi_memclr(void *to, size_t bytes)
{
    fill(to, 0, bytes);
}
#endif

int putchar(int character)
{
    crt_port_put((uint8_t)character);
    return character;
}

static int text(const char *from)
{
    int count = 0;

    while (*from != '\0') {
        putchar(*from++);
        count++;
    }
    return count;
}

int puts(const char *line)
{
    return text(line) + (putchar('\n') == '\n');
}

/* Digits of a number, at least `width` characters. */
static int number(uint64_t value, uint32_t base, int negative, int width,
                  char fill)
{
    char digits[24];
    int count = 0;
    int written = 0;

    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    if (negative && fill == '0')
        written += putchar('-') == '-';
    for (width -= count + negative; width > 0; width--, written++)
        putchar(fill);
    if (negative && fill != '0')
        written += putchar('-') == '-';
    while (count > 0) {
        putchar(digits[--count]);
        written++;
    }
    return written;
}

/* The value of a d, u or x of `longs` times l. */
static uint64_t take(va_list *values, int longs, int is_signed)
{
    if (longs == 2)
        return va_arg(*values, unsigned long long);
    if (longs == 1 && is_signed)
        return (uint64_t)(int64_t)va_arg(*values, long);
    if (longs == 1)
        return va_arg(*values, unsigned long);
    if (is_signed)
        return (uint64_t)(int64_t)va_arg(*values, int);
    return va_arg(*values, unsigned int);
}

static int conversion(char kind, va_list *values, int longs, int width,
                      char fill)
{
    uint64_t value;
    int negative;

    switch (kind) {
    case 's':
        return text(va_arg(*values, const char *));
    case 'c':
        putchar(va_arg(*values, int));
        return 1;
    case 'd':
    case 'u':
    case 'x':
        value = take(values, longs, kind == 'd');
        negative = kind == 'd' && (int64_t)value < 0;
        value = negative ? 0u - value : value;
        return number(value, kind == 'x' ? 16 : 10, negative, width, fill);
    default:
        putchar(kind);
        return 1;
    }
}

int printf(const char *format, ...)
{
    va_list values;
    int count = 0;

    va_start(values, format);
    while (*format != '\0') {
        char fill = ' ';
        int width = 0;
        int longs = 0;

        if (*format != '%') {
            putchar(*format++);
            count++;
            continue;
        }
        if (*++format == '0')
            fill = '0';
        while (*format >= '0' && *format <= '9')
            width = 10 * width + (*format++ - '0');
        for (; *format == 'l'; format++)
            longs++;
        if (*format != '\0')
            count += conversion(*format++, &values, longs, width, fill);
    }
    va_end(values);
    return count;
}
