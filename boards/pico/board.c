/* board.c: pico: its console is UART0 at the pins 1 and 2 (GP0, GP1).
 * Source: RP2040 Datasheet, sections 2.14, 2.15, 2.16, 2.19 */
#include "crt/port.h"
#include "uart/pl011.h"

#define REG(address) (*(volatile uint32_t *)(address))
#define CLOCKS       0x40008000u
#define RESETS       0x4000C000u
#define IO_BANK0     0x40014000u
#define XOSC         0x40024000u
#define CLEAR        0x3000u /* writes there clear bits */
#define USED         (1u << 5 | 1u << 8 | 1u << 22) /* pins, pads, UART0 */

/* The boot ROM copies these 256 bytes to RAM and calls them: they set up the
 * flash to be read by command 03, as each flash can, and go to the vectors
 * behind. The last word is the ROM's checksum of the others.
 * Source: RP2040 Datasheet, sections 2.8.1.3 and 4.10 */
__attribute__((section(".boot_first"),
               used)) static const uint32_t second_stage[64] = {
    0x4B0CB500u,       0x60992100u, 0x61592104u, 0x6019490Au, 0x480B490Au,
    0x21006001u,       0x21016059u, 0xBC016099u, 0xD0002800u, 0x48074700u,
    0x60084907u,       0xF380C803u, 0x47088808u, 0x18000000u, 0x001F0300u,
    0x03000218u,       0x180000F4u, 0x10000100u, 0xE000ED08u, 0x00000000u,
    [63] = 0x0D21EC2Cu};

void crt_port_init(void)
{
    REG(XOSC + 0x0Cu) = 47u; /* STARTUP: about a millisecond */
    REG(XOSC) = 0xFABAA0u;   /* on, 1 to 15 MHz */
    while ((REG(XOSC + 4u) & 1u << 31) == 0) {
    }
    REG(CLOCKS + 0x30u) = 2u; /* CLK_REF, and so CLK_SYS: the crystal */
    while ((REG(CLOCKS + 0x38u) & 4u) == 0) {
    }
    REG(CLOCKS + 0x48u) = 1u << 11; /* CLK_PERI: CLK_SYS */
    REG(RESETS + CLEAR) = USED;
    while ((REG(RESETS + 8u) & USED) != USED) {
    }
    REG(IO_BANK0 + 0x04u) = 2u; /* GP0, GP1: UART */
    REG(IO_BANK0 + 0x0Cu) = 2u;
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
