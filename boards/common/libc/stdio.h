/* stdio.h: printf to the board's console, without floats. */
#ifndef BOARD_STDIO_H
#define BOARD_STDIO_H

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
/* %d %u %x %s %c %%, with l, ll, a width and leading zeros. */
int printf(const char *format, ...);
int putchar(int character);
int puts(const char *text);

#endif
