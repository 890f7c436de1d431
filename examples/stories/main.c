/* main.c: goes on telling the story that a line begins, a token at a time.
 * Lines that begin with / set something: /t 80 the temperature in hundredths
 * (0: always the likeliest token), /s 7 where the random numbers begin, /n 100
 * the tokens at most. Ctrl-D ends the program. Text goes through crt/port.h: a
 * UART, a debugger, or standard input and output (port_host.c). */
#include "sampler.h"
#include "stories.h"
#include "tokens.h"

#include "crt/port.h"

#ifndef LOGITS
#define LOGITS stories_logits
#endif

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(STORIES_ARENA_ALIGN)))
#else
#define ALIGNED /* place the arena at a multiple of 16 */
#endif

#define WINDOW 256u /* positions: those of the caches */
#define WORDS  512u
#define END    4 /* Ctrl-D */

static uint8_t arena[STORIES_ARENA_BYTES] ALIGNED;
static struct stories model;
static uint16_t line[WINDOW]; /* bytes, then tokens */

static void say(const char *text)
{
    while (*text != '\0') {
        crt_port_put((uint8_t)*text);
        text++;
    }
}

/* Reads a line of bytes; END: there are no more. */
static int read_line(uint32_t *count)
{
    int byte = 0;

    *count = 0;
    while (byte != '\n' && byte != END) {
        byte = crt_port_get();
        if (byte > 0 && byte != '\n' && byte != '\r' && byte != END &&
            *count < WINDOW - 1u) {
            line[*count] = (uint16_t)byte;
            *count += 1u;
        }
    }
    return byte;
}

static uint32_t number(uint32_t count)
{
    uint32_t value = 0;
    uint32_t i;

    for (i = 3; i < count && line[i] >= '0' && line[i] <= '9'; i++) {
        value = value * 10u + (uint32_t)(line[i] - '0');
    }
    return value;
}

/* The logits after a token. */
static int step(uint16_t token, uint32_t at)
{
    const int64_t token_in = token;
    const int64_t at_in = (int64_t)at;
    int error = stories_set_token(&model, &token_in);

    if (error == CRT_OK) {
        error = stories_set_at(&model, &at_in);
    }
    return error == CRT_OK ? stories_run(&model) : error;
}

/* Reads the line, then goes on until the story ends. */
static int tell(struct sampler *chance, uint32_t count, uint32_t most)
{
    const uint32_t known = tokens_encode(line, count);
    uint16_t token = TOKENS_BEGIN;
    uint32_t at;

    for (at = 0; at < WINDOW && at < known + most; at++) {
        const int error = step(token, at);

        if (error != CRT_OK) {
            return error;
        }
        token =
            at < known ? line[at] : sampler_next(chance, LOGITS(&model), WORDS);
        if (token == TOKENS_BEGIN) {
            break;
        }
        tokens_write(token, crt_port_put);
    }
    say("\n");
    return CRT_OK;
}

int main(void)
{
    const struct stories_memory memory = STORIES_MEMORY(arena);
    uint32_t temperature = 0;
    uint32_t seed = 1;
    uint32_t most = WINDOW;
    uint32_t count;
    int error = stories_init(&model, &memory);

    while (error == CRT_OK && read_line(&count) != END) {
        struct sampler chance;

        if (count > 2u && line[0] == '/') {
            uint32_t *const set = line[1] == 't'   ? &temperature
                                  : line[1] == 's' ? &seed
                                                   : &most;

            *set = number(count);
            continue;
        }
        sampler_start(&chance, seed, temperature);
        error = tell(&chance, count, most);
    }
    if (error != CRT_OK) {
        say(crt_strerror(error));
        say("\n");
    }
    return error;
}
