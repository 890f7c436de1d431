/* esp32.h: the UART of Espressif's chips, as their boot ROM leaves it.
 * Source: Espressif ESP32 Technical Reference Manual, chapter 13 */
#include <stdint.h>

#define UART(offset) (*(volatile uint32_t *)(BOARD_UART + (offset)))
enum { FIFO = 0x00, STATUS = 0x1C };
#define SENDING(status)  ((status) >> 16 & 0xFFu) /* bytes that wait */
#define RECEIVED(status) ((status) & 0xFFu)
#define ROOM             100u /* of 128 bytes */

static void uart_init(void)
{
}

static void uart_put(uint8_t byte)
{
    while (SENDING(UART(STATUS)) > ROOM) {
    }
    UART(FIFO) = byte;
}

static int uart_get(void)
{
    return RECEIVED(UART(STATUS)) > 0 ? (int)(UART(FIFO) & 0xFFu) : -1;
}
