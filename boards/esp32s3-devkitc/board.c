/* board.c: esp32s3-devkitc: its console is UART0, which the boot ROM has
 * set to 115200 baud. On the chip the model is a component of ESP-IDF, whose
 * boot loader maps the flash: docs/boards.md */
#include "crt/port.h"
#include "uart/esp32.h"

void crt_port_init(void)
{
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
