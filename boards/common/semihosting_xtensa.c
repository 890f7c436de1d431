/* semihosting_xtensa.c: files, console and exit through Tensilica's simulator
 * calls, which QEMU answers: flags of files are those of the host, Linux.
 * Source: Xtensa ISA Reference Manual, SIMCALL; QEMU's xtensa-semi.c */
#include "board.h"

#include "crt/port.h"

enum {
    SYS_EXIT = 1,
    SYS_READ = 3,
    SYS_WRITE = 4,
    SYS_OPEN = 5,
    SYS_CLOSE = 6,
    SYS_SEEK = 19
};
#define READ       0u
#define WRITE_NEW  0x241u /* write, create, truncate */
#define ANY_MODE   0x1B6u /* read and written by all, in octal 666 */
#define FROM_START 0u
#define STDOUT     1

__attribute__((noinline)) static int32_t call(uint32_t operation, uint32_t a,
                                              uint32_t b, uint32_t c)
{
    register uint32_t a2 __asm__("a2") = operation;
    register uint32_t a3 __asm__("a3") = a;
    register uint32_t a4 __asm__("a4") = b;
    register uint32_t a5 __asm__("a5") = c;

    __asm__ volatile("simcall"
                     : "+r"(a2), "+r"(a3)
                     : "r"(a4), "r"(a5)
                     : "memory");
    return (int32_t)a2;
}

int32_t board_open(const char *name, int for_writing)
{
    return call(SYS_OPEN, (uintptr_t)name, for_writing ? WRITE_NEW : READ,
                ANY_MODE);
}

int32_t board_read(int32_t file, void *data, uint32_t bytes)
{
    return call(SYS_READ, (uint32_t)file, (uintptr_t)data, bytes);
}

int32_t board_write(int32_t file, const void *data, uint32_t bytes)
{
    return call(SYS_WRITE, (uint32_t)file, (uintptr_t)data, bytes);
}

void board_close(int32_t file)
{
    call(SYS_CLOSE, (uint32_t)file, 0, 0);
}

void board_seek(int32_t file, uint32_t at)
{
    call(SYS_SEEK, (uint32_t)file, at, FROM_START);
}

void board_put(uint8_t byte)
{
    call(SYS_WRITE, STDOUT, (uintptr_t)&byte, 1);
}

void crt_port_exit(int code)
{
    for (;;)
        call(SYS_EXIT, (uint32_t)code, 0, 0);
}
