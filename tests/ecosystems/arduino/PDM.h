/* PDM.h: a microphone that hears a file, for sketches that are run here. */
#ifndef PDM_H
#define PDM_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct Microphone {
    FILE *file;
    void (*receive)();

    void onReceive(void (*callback)())
    {
        receive = callback;
    }
    int begin(int channels, int rate)
    {
        file = fopen(getenv("SOUND"), "rb");
        return file != NULL && channels == 1 && rate == 16000;
    }
    int read(void *data, size_t bytes)
    {
        const size_t count = fread(data, 1, bytes, file);

        if (count == 0)
            exit(0);
        return (int)count;
    }
};

static Microphone PDM;

#endif
