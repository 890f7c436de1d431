/* What may be set of wake words; says what is wrong, else nothing. */
#include <stdio.h>
#include <string.h>

#include "listen_words.h"

#define MUST(what)                                                             \
    do {                                                                       \
        if (!(what))                                                           \
            printf("line %d: %s\n", __LINE__, #what);                          \
    } while (0)

static uint8_t arena[LISTEN_ARENA_BYTES]
    __attribute__((aligned(LISTEN_ARENA_ALIGN)));
static struct listen_words w, again;
static int16_t samples[16000 * 6];
static unsigned count;

static void heard(void *context, uint32_t word)
{
    MUST(context == &w && word == LISTEN_WORD_HELLO);
    count++;
}

static unsigned words(void)
{
    count = 0;
    MUST(listen_words_reset(&w) == CRT_OK);
    MUST(listen_words_push(&w, samples, sizeof samples / 2, heard, &w) ==
         CRT_OK);
    return count;
}

int main(void)
{
    const struct listen_memory memory = LISTEN_MEMORY(arena);
    const struct listen_memory none = {{arena, 8}};
    unsigned i, all;

    for (i = 0; i < sizeof samples / 2; i++)
        samples[i] = (int16_t)((i * i / 64 % 20000) * (i / 8000 % 2));
    MUST(listen_words_push(&w, samples, 1, heard, &w) == CRT_ERR_NULL);
    MUST(listen_words_init(NULL, &memory) == CRT_ERR_NULL);
    MUST(listen_words_init(&w, &none) == CRT_ERR_REGION);
    MUST(listen_words_init(&w, &memory) == CRT_OK);
    MUST(strcmp(listen_phrases[LISTEN_WORD_HELLO], "Hello, \"you\"") == 0);
    MUST(LISTEN_WORDS == 1 && LISTEN_HAS_VAD);
    MUST(w.scores[0].cutoff == 153 && w.scores[0].window == 5);
    MUST(listen_words_push(NULL, samples, 1, heard, &w) == CRT_ERR_NULL);
    MUST(listen_words_push(&w, NULL, 1, heard, &w) == CRT_ERR_NULL);

    /* nothing is heard where all is above the cutoff, as every row renews the
     * wait */
    MUST(listen_words_set(&w, LISTEN_WORDS, 0, 1) == CRT_OK);
    MUST(listen_words_set(&w, 0, 0, 1) == CRT_OK);
    MUST(words() == 0);
    MUST(listen_words_set(&w, 0, 153, 5) == CRT_OK);
    all = words();
    MUST(words() == all);
    MUST(listen_words_set(&w, 0, 255, 5) == CRT_OK);
    MUST(words() == 0);

    /* a word without its net's yes, and a voice that nobody asks for */
    MUST(listen_words_set(&w, 0, 153, 5) == CRT_OK);
    MUST(listen_words_enable(&w, 0, 0) == CRT_OK);
    MUST(words() == 0);
    MUST(listen_words_enable(&w, 0, 1) == CRT_OK);
    MUST(words() == all);
    MUST(listen_words_set(&w, LISTEN_WORDS, 255, LISTEN_WINDOW_MAX) == CRT_OK);
    MUST(words() == 0);
    MUST(listen_words_enable(&w, LISTEN_WORDS, 0) == CRT_OK);
    MUST(words() >= all && count > 0);

    /* nobody is told, and one sample at a time is as all at once */
    all = count;
    MUST(listen_words_push(&w, samples, 16000, NULL, NULL) == CRT_OK);
    MUST(listen_words_reset(&w) == CRT_OK);
    for (i = count = 0; i < sizeof samples / 2; i++)
        MUST(listen_words_push(&w, &samples[i], 1, heard, &w) == CRT_OK);
    MUST(count == all);

    /* what is not there */
    again = w;
    MUST(listen_words_set(&w, 2, 1, 1) == CRT_ERR_INDEX);
    MUST(listen_words_set(&w, 0, 1, 0) == CRT_ERR_INDEX);
    MUST(listen_words_set(&w, 0, 1, LISTEN_WINDOW_MAX + 1) == CRT_ERR_INDEX);
    MUST(listen_words_enable(&w, 2, 1) == CRT_ERR_INDEX);
    MUST(listen_words_set(NULL, 0, 1, 1) == CRT_ERR_NULL);
    MUST(listen_words_enable(NULL, 0, 1) == CRT_ERR_NULL);
    MUST(listen_words_reset(NULL) == CRT_ERR_NULL);
    MUST(memcmp(&again, &w, sizeof w) == 0);
    return 0;
}
