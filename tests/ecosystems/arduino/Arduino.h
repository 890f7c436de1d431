/* Arduino.h: a core whose Serial is stdout, for sketches that are run here. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static inline unsigned long millis(void)
{
    return 0;
}

enum { LOW, HIGH, OUTPUT, LED_BUILTIN = 13 };

static inline void pinMode(int, int)
{
}

static inline void digitalWrite(int, int)
{
}

static inline void delay(unsigned long)
{
}

struct Console {
    void begin(unsigned long)
    {
    }
    operator bool() const
    {
        return true;
    }
    void print(const char *text)
    {
        printf("%s", text);
    }
    void print(char one)
    {
        printf("%c", one);
    }
    void print(int value)
    {
        printf("%d", value);
    }
    void print(long value)
    {
        printf("%ld", value);
    }
    void print(double value, int digits)
    {
        if (value < 0)
            printf("-");
        value = value < 0 ? -value : value;
        printf("%ld.", (long)value);
        for (value -= (double)(long)value; digits > 0; digits--) {
            value *= 10;
            printf("%d", (int)value);
            value -= (int)value;
        }
    }
    void println(const char *text = "")
    {
        printf("%s\n", text);
    }
};

static Console Serial;

void setup(void);
void loop(void);

#endif
