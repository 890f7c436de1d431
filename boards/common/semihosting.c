/* semihosting.c: files and exit through a debugger or simulator.
 * Source: Arm's semihosting specification, RISC-V's of the same calls. */
#include "board.h"

#include "crt/port.h"

#include <string.h>

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITEC = 0x03,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0A,
    SYS_EXIT_EXTENDED = 0x20
};
#define MODE_READ_BINARY  1u
#define MODE_WRITE_BINARY 5u
#define APPLICATION_EXIT  0x20026u

/* Once: clang 14 fails for RISC-V where several of these are in one file. */
__attribute__((noinline)) static int32_t call(uint32_t operation,
                                              const void *arguments)
{
#ifdef __riscv
    register uint32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = arguments;

    __asm__ volatile(".option push\n"
                     ".option norvc\n"
                     ".balign 16\n" /* the three must not cross a page */
                     "slli x0, x0, 0x1f\n"
                     "ebreak\n"
                     "srai x0, x0, 7\n"
                     ".option pop\n"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return (int32_t)a0;
#else
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;

    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
#endif
}

int32_t board_open(const char *name, int for_writing)
{
    const uintptr_t arguments[3] = {
        (uintptr_t)name, for_writing ? MODE_WRITE_BINARY : MODE_READ_BINARY,
        strlen(name)};

    return call(SYS_OPEN, arguments);
}

/* SYS_READ and SYS_WRITE answer how much is left undone. */
int32_t board_read(int32_t file, void *data, uint32_t bytes)
{
    const uintptr_t arguments[3] = {(uintptr_t)file, (uintptr_t)data, bytes};

    return (int32_t)bytes - call(SYS_READ, arguments);
}

int32_t board_write(int32_t file, const void *data, uint32_t bytes)
{
    const uintptr_t arguments[3] = {(uintptr_t)file, (uintptr_t)data, bytes};

    return (int32_t)bytes - call(SYS_WRITE, arguments);
}

void board_close(int32_t file)
{
    const uintptr_t arguments[1] = {(uintptr_t)file};

    call(SYS_CLOSE, arguments);
}

void board_seek(int32_t file, uint32_t at)
{
    const uintptr_t arguments[2] = {(uintptr_t)file, at};

    call(SYS_SEEK, arguments);
}

void board_put(uint8_t byte)
{
    call(SYS_WRITEC, &byte);
}

void crt_port_exit(int code)
{
    const uintptr_t arguments[2] = {APPLICATION_EXIT, (uintptr_t)code};

    call(SYS_EXIT_EXTENDED, arguments);
    for (;;) { /* where nobody answered, the board stops here */
    }
}
