/* board.c: pico2-riscv: its console is UART0 at the pins 1 and 2 (GP0,
 * GP1). Source: RP2350 Datasheet, sections 7.5, 8.1, 8.2, 9.11 */
#include "crt/port.h"
#include "uart/pl011.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define CLOCKS       0x40010000u
#define RESETS       0x40020000u
#define IO_BANK0     0x40028000u
#define PADS_BANK0   0x40038000u
#define XOSC         0x40048000u
#define CLEAR        0x3000u /* writes there clear bits */
#define USED         (1u << 6 | 1u << 9 | 1u << 26) /* pins, pads, UART0 */
#define PAD          0x52u /* input on, no isolation, no pull */

/* What the boot ROM looks for in the first 4 KB: a block that says "RISC-V".
 * Source: RP2350 Datasheet, section 5.9 */
__attribute__((section(".boot_header"),
               used)) static const uint32_t image_def[5] = {
    0xFFFFDED3u, 0x11010142u, 0x000001FFu, 0u, 0xAB123579u};

void crt_port_init(void)
{
    __asm__ volatile("csrwi mcountinhibit, 0"); /* mcycle counts */
    REG(XOSC + 0x0Cu) = 47u; /* STARTUP: about a millisecond */
    REG(XOSC) = 0xFABAA0u;   /* on, 1 to 15 MHz */
    while ((REG(XOSC + 4u) & 1u << 31) == 0) {
    }
    REG(CLOCKS + 0x30u) = 2u; /* CLK_REF: the crystal */
    while ((REG(CLOCKS + 0x38u) & 4u) == 0) {
    }
    REG(CLOCKS + 0x3Cu) = 0u;       /* CLK_SYS: CLK_REF */
    REG(CLOCKS + 0x48u) = 1u << 11; /* CLK_PERI: CLK_SYS */
    REG(RESETS + CLEAR) = USED;
    while ((REG(RESETS + 8u) & USED) != USED) {
    }
    REG(IO_BANK0 + 0x04u) = 2u; /* GP0, GP1: UART */
    REG(IO_BANK0 + 0x0Cu) = 2u;
    REG(PADS_BANK0 + 0x04u) = PAD;
    REG(PADS_BANK0 + 0x08u) = PAD;
    uart_init();
}

void crt_port_put(uint8_t byte)
{
    uart_put(byte);
}

int crt_port_get(void)
{
    return uart_get();
}
