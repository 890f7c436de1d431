/* avr_cycles.c: one inference of `digits` on an ATmega2560, in 1024 cycles
 * each, said on USART0; then the sleep that ends simavr. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdio.h>

#include "digits.h"

static uint8_t arena[DIGITS_ARENA_BYTES] __attribute__((aligned(16)));
static struct digits model;
static int8_t image[DIGITS_IMAGE_LEN];

static int put(char byte, FILE *to)
{
    (void)to;
    while (!(UCSR0A & (1 << UDRE0))) {
    }
    UDR0 = (uint8_t)byte;
    return 0;
}

static FILE out = FDEV_SETUP_STREAM(put, NULL, _FDEV_SETUP_WRITE);

int main(void)
{
    const struct digits_memory memory = DIGITS_MEMORY(arena);
    int error = digits_init(&model, &memory);
    uint16_t ticks;

    UCSR0B = 1 << TXEN0;
    stdout = &out;
    if (error == CRT_OK)
        error = digits_set_image(&model, image);
    TCCR1A = 0;
    TCCR1B = 1 << CS12 | 1 << CS10; /* the clock / 1024 */
    ticks = TCNT1;
    if (error == CRT_OK)
        error = digits_run(&model);
    ticks = (uint16_t)(TCNT1 - ticks);
    printf("error %d, ticks %u\n", error, ticks);
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
