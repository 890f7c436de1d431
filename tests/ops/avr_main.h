/* avr_main.h: the self-test of one case on an ATmega2560: its word on USART0,
 * then the sleep that ends simavr. CASE: the case's name; CASE_ARENA: bytes. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

#define JOINED(name, more) name##more
#define NAMED(name, more)  JOINED(name, more)

static void put(const char *text)
{
    for (; *text != 0; text++) {
        while (!(UCSR0A & (1 << UDRE0))) {
        }
        UDR0 = (uint8_t)*text;
    }
    while (!(UCSR0A & (1 << TXC0))) {
    }
}

static uint8_t arena[CASE_ARENA + 1] __attribute__((aligned(16)));
static struct CASE model;

int main(void)
{
    const struct NAMED(CASE, _memory) memory = {{arena, CASE_ARENA}};
    int error = NAMED(CASE, _init)(&model, &memory);

    UCSR0B = 1 << TXEN0;
    if (error == CRT_OK)
        error = NAMED(CASE, _selftest)(&model);
    put(error == CRT_OK ? "passed\n" : "failed\n");
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
