/* main.c: the serial protocol of EEMBC's runner for MLPerf Tiny, around one
 * model: commands end in %, answers in m-ready. Accuracy and performance mode
 * are the runner's; here is what it asks for.
 * Source: EEMBC's API of MLPerf Tiny (api/internally_implemented.cpp) */
#include "crt/port.h"
#include "net.h"

#include <stdio.h>

#ifndef NET_PROFILE
#define NET_PROFILE "ULPMark for tinyML Firmware V0.0.1"
#endif
#ifndef NET_VERSION
#define NET_VERSION "net"
#endif
#ifndef NET_VENDOR
#define NET_VENDOR "crt"
#endif
/* Bytes that `db load` takes at most. */
#ifndef NET_BUFFER
#define NET_BUFFER 32768u
#endif
/* What the bytes of a sample are: of the input's own type; uint8 pixels, of
 * which an int8 input takes 128 off; or float32 real numbers. */
#define SAMPLE_RAW    0
#define SAMPLE_PIXELS 1
#define SAMPLE_FLOATS 2
#ifndef NET_SAMPLE
#define NET_SAMPLE SAMPLE_RAW
#endif
/* Results: every output, or the mean squared error between input and output
 * (of the anomaly detector). */
#ifndef NET_ERROR
#define NET_ERROR 0
#endif

enum { LINE = 160 };

static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(NET_ARENA_ALIGN)));
static struct net model;
static uint8_t buffer[NET_BUFFER];
static uint32_t expected; /* bytes of the sample */
static uint32_t taken;
static uint64_t ticks; /* since the start */
static uint32_t ticks_before;

static void count_ticks(void)
{
    const uint32_t now = crt_port_ticks();

    ticks += now - ticks_before;
    ticks_before = now;
}

/* Each inference must end before the counter turns. */
static void timestamp(void)
{
    count_ticks();
    printf("m-lap-us-%llu\r\n",
           (unsigned long long)(ticks * 1000000u / BOARD_HZ));
}

static int is(const char *word, const char *other)
{
    while (*word != '\0' && *word == *other) {
        word++;
        other++;
    }
    return *word == *other;
}

/* The next word of *at, ended; "" where there is none. */
static char *word_of(char **at)
{
    char *first = *at;
    char *p;

    while (*first == ' ')
        first++;
    for (p = first; *p != '\0' && *p != ' '; p++) {
    }
    *at = *p == '\0' ? p : p + 1;
    *p = '\0';
    return first;
}

/* Decimal digits; -1: it is no number, or a larger one than 2^24. */
static int32_t number_of(const char *word)
{
    int32_t value = 0;

    if (*word == '\0')
        return -1;
    for (; *word != '\0'; word++) {
        if (*word < '0' || *word > '9' || value > 1677720)
            return -1;
        value = 10 * value + (*word - '0');
    }
    return value;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* ---- samples ------------------------------------------------------------- */

static float real_of(const struct crt_tensor *info, const void *data,
                     uint32_t i)
{
    if (info->dtype == CRT_FLOAT32)
        return ((const float *)data)[i];
    return info->scale *
           (float)(((const int8_t *)data)[i] - (int)info->zero_point);
}

static uint32_t count_of(const struct crt_tensor *info)
{
    return info->dtype == CRT_FLOAT32 ? info->bytes / 4u : info->bytes;
}

/* The nearest int8 of a real number, ties to even. */
static int8_t quantised(const struct crt_tensor *info, float real)
{
    const float value = real / info->scale + (float)info->zero_point;
    int32_t whole;
    float rest;

    if (value <= -128.0f)
        return -128;
    if (value >= 127.0f)
        return 127;
    whole = (int32_t)value;
    rest = value - (float)whole;
    if (rest > 0.5f || (rest == 0.5f && (whole & 1) != 0))
        whole++;
    if (rest < -0.5f || (rest == -0.5f && (whole & 1) != 0))
        whole--;
    return (int8_t)whole;
}

static uint32_t sample_bytes(const struct crt_tensor *info)
{
    if (NET_SAMPLE == SAMPLE_PIXELS)
        return count_of(info);
    return NET_SAMPLE == SAMPLE_FLOATS ? 4u * count_of(info) : info->bytes;
}

static float float_at(const uint8_t *at)
{
    float value;

    memcpy(&value, at, sizeof value);
    return value;
}

/* The sample, as the input has it: a run may use the input's memory. */
static void take_sample(void)
{
    const struct crt_tensor *info = crt_graph_input_info(&model.graph, 0);
    void *input = crt_graph_input(&model.graph, 0);
    uint32_t i;

    for (i = 0; i < count_of(info); i++) {
        if (NET_SAMPLE == SAMPLE_RAW && info->dtype != CRT_FLOAT32)
            ((uint8_t *)input)[i] = buffer[i];
        else if (NET_SAMPLE == SAMPLE_PIXELS && info->dtype != CRT_FLOAT32)
            ((int8_t *)input)[i] = (int8_t)(buffer[i] - 128);
        else if (NET_SAMPLE == SAMPLE_PIXELS)
            ((float *)input)[i] = (float)buffer[i];
        else if (info->dtype == CRT_FLOAT32)
            ((float *)input)[i] = float_at(&buffer[4u * i]);
        else
            ((int8_t *)input)[i] = quantised(info, float_at(&buffer[4u * i]));
    }
}

/* ---- results ------------------------------------------------------------- */

/* Three digits after the point: the boards' printf knows no floats. */
static void print_real(float value)
{
    const float size = (value < 0 ? -value : value) * 1000.0f + 0.5f;
    const unsigned long thousandths =
        size < 4e9f ? (unsigned long)size : 4000000000ul;

    printf("%s%lu.%03lu", value < 0 && thousandths != 0 ? "-" : "",
           thousandths / 1000u, thousandths % 1000u);
}

static void results(void)
{
    const struct crt_tensor *out = crt_graph_output_info(&model.graph, 0);
    const void *values = crt_graph_output(&model.graph, 0);
    uint32_t i;

    printf("m-results-[");
    for (i = 0; values != NULL && !NET_ERROR && i < count_of(out); i++) {
        if (i > 0)
            printf(",");
        print_real(real_of(out, values, i));
    }
    if (values != NULL && NET_ERROR) {
        float sum = 0;

        for (i = 0; i < count_of(out); i++) {
            const float far =
                float_at(&buffer[4u * i]) - real_of(out, values, i);

            sum += far * far;
        }
        print_real(sum / (float)count_of(out));
    }
    printf("]\r\n");
}

static void infer(int32_t count, int32_t warm)
{
    int error = CRT_OK;
    int32_t i;

    printf("m-warmup-start-%d\r\n", (int)warm);
    for (i = 0; i < warm && error == CRT_OK; i++) {
        take_sample();
        error = net_run(&model);
        count_ticks();
    }
    printf("m-warmup-done\r\n");
    printf("m-infer-start-%d\r\n", (int)count);
    timestamp();
    for (i = 0; i < count && error == CRT_OK; i++) {
        take_sample();
        error = net_run(&model);
        count_ticks();
    }
    timestamp();
    printf("m-infer-done\r\n");
    if (error != CRT_OK)
        printf("e-[%s]\r\n", crt_strerror(error));
    else
        results();
}

/* ---- commands ------------------------------------------------------------ */

static void do_infer(char **at)
{
    const char *first = word_of(at);
    const char *second = word_of(at);
    const int32_t count = *first == '\0' ? 1 : number_of(first);
    const int32_t warm = *second == '\0' ? 10 : number_of(second);

    if (count <= 0)
        printf("e-[Inference iterations must be >0]\r\n");
    else if (warm < 0)
        printf("e-[Inference warmup must be >=0]\r\n");
    else if (taken < sample_bytes(crt_graph_input_info(&model.graph, 0)))
        printf("e-[The sample is not loaded]\r\n");
    else
        infer(count, warm);
}

static void load(const char *word)
{
    const int32_t bytes = number_of(word);

    if (*word == '\0')
        printf("e-[Command 'db load' requires the # of bytes]\r\n");
    else if (bytes <= 0)
        printf("e-[Command 'db load' must be >0 bytes]\r\n");
    else if ((uint32_t)bytes > NET_BUFFER)
        printf("e-[Supplied buffer size %d exceeds maximum of %d]\r\n",
               (int)bytes, (int)NET_BUFFER);
    else {
        expected = (uint32_t)bytes;
        taken = 0;
        printf("m-[Expecting %d bytes]\r\n", (int)bytes);
    }
}

static void print_buffer(void)
{
    uint32_t i;

    for (i = 0; i < taken; i++) {
        if (i % 8u == 0)
            printf("m-buffer-");
        printf("%02x%s", (unsigned)buffer[i],
               i % 8u == 7u || i + 1u == taken ? "\r\n" : "-");
    }
}

static void take_bytes(const char *word)
{
    while (word[0] != '\0') {
        const int high = digit_of(word[0]);
        const int low = high < 0 ? -1 : digit_of(word[1]);

        if (low < 0) {
            printf("e-[Insufficent number of hex digits]\r\n");
            return;
        }
        if (taken >= expected) {
            printf("e-[More bytes than 'db load' said]\r\n");
            return;
        }
        buffer[taken++] = (uint8_t)(16 * high + low);
        word += 2;
        if (taken == expected)
            printf("m-load-done\r\n");
    }
}

static void do_buffer(char **at)
{
    const char *word = word_of(at);

    if (*word == '\0')
        printf("e-[Command 'db' requires a subcommand]\r\n");
    else if (is(word, "load"))
        load(word_of(at));
    else if (is(word, "print"))
        print_buffer();
    else
        take_bytes(word);
}

static void do_command(char *line)
{
    const char *word = word_of(&line);

    if (is(word, "name"))
        printf("m-name-dut-[%s]\r\n", NET_VENDOR);
    else if (is(word, "profile"))
        printf("m-profile-[%s]\r\nm-model-[%s]\r\n", NET_PROFILE, NET_VERSION);
    else if (is(word, "timestamp"))
        timestamp();
    else if (is(word, "infer"))
        do_infer(&line);
    else if (is(word, "results"))
        results();
    else if (is(word, "db"))
        do_buffer(&line);
    else if (is(word, "help"))
        puts("name, profile, timestamp, infer N W, results, db load N, db HEX, "
             "db print; each ends in %\r");
    else
        printf("e-[Unknown command: %s]\r\n", word);
    printf("m-ready\r\n");
}

int main(void)
{
    static char line[LINE + 1];
    const struct net_memory memory = NET_MEMORY(arena);
    uint32_t length = 0;
    int error = net_init(&model, &memory);

    if (error == CRT_OK &&
        sample_bytes(crt_graph_input_info(&model.graph, 0)) > NET_BUFFER)
        error = CRT_ERR_SIZE;
    if (error == CRT_OK && crt_graph_input(&model.graph, 0) == NULL) {
        printf(
            "e-[Build the net with --input keep: it has no float memory]\r\n");
        return 1;
    }
    if (error != CRT_OK) {
        printf("e-[%s]\r\n", crt_strerror(error));
        return 1;
    }
    ticks_before = crt_port_ticks();
    printf("m-init-done\r\nm-ready\r\n");
    for (;;) {
        const int byte = crt_port_get();

        count_ticks();
        if (byte < 0 || byte == '\r' || byte == '\n')
            continue;
        if (byte != '%') {
            line[length] = (char)byte;
            length += length < LINE;
            continue;
        }
        line[length] = '\0';
        length = 0;
        do_command(line);
    }
}
