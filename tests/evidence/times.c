/* What the tests call on an emulated Cortex-M4 to count what functions of crt
 * take, as their headers say. */
#include "crt/crc.h"
#include "crt/params.h"
#include "crt/timing.h"
#include "crt/unpack.h"

#define API __attribute__((used, section(".text.runner")))

enum { LAPS = 64 };

static uint8_t image[1 << 16] __attribute__((aligned(16)));
static uint8_t unpacked[1 << 16] __attribute__((aligned(16)));
static char name[32];
static struct crt_params params;
static struct crt_param param;
static struct crt_lap laps[LAPS];

API uint32_t time_checksum(uint32_t bytes)
{
    return crt_crc32(0, image, bytes);
}

API int time_verify(uint32_t bytes)
{
    return crt_params_verify(&params, image, bytes);
}

API int time_find(void)
{
    return crt_params_find(&params, name);
}

API int time_get(uint32_t index)
{
    return crt_params_get(&params, index, &param);
}

API int time_unpack(void)
{
    return crt_params_unpack(&param, unpacked, param.bytes, NULL, NULL);
}

API int time_summary(uint32_t count)
{
    struct crt_timing_summary made;
    uint32_t i;

    for (i = 0; i < LAPS; i++) {
        laps[i].ticks = 1000u - i;
        laps[i].runs = 1u;
    }
    return crt_timing_summary_of(laps, count, &made);
}
