/* dmic.h: Zephyr's interface of digital microphones, over a file. */
#ifndef ZEPHYR_AUDIO_DMIC_H
#define ZEPHYR_AUDIO_DMIC_H

#include <stdio.h>
#include <string.h>
#include <zephyr/kernel.h>

enum dmic_trigger { DMIC_TRIGGER_STOP, DMIC_TRIGGER_START };
enum pdm_lr { PDM_CHAN_RIGHT, PDM_CHAN_LEFT };

struct pdm_io_cfg {
    uint32_t min_pdm_clk_freq, max_pdm_clk_freq;
    uint8_t min_pdm_clk_dc, max_pdm_clk_dc, pdm_clk_pol, pdm_data_pol;
    uint32_t pdm_clk_skew;
};

struct pcm_stream_cfg {
    uint32_t pcm_rate;
    uint8_t pcm_width;
    uint16_t block_size;
    struct k_mem_slab *mem_slab;
};

struct pdm_chan_cfg {
    uint32_t act_chan_map_lo, act_chan_map_hi, req_chan_map_lo, req_chan_map_hi;
    uint8_t act_num_chan, act_num_streams, req_num_chan, req_num_streams;
};

struct dmic_cfg {
    struct pdm_io_cfg io;
    struct pcm_stream_cfg *streams;
    struct pdm_chan_cfg channel;
};

static FILE *sound;
static struct k_mem_slab *slab;

static inline uint32_t dmic_build_channel_map(uint8_t channel, uint8_t pdm,
                                              enum pdm_lr lr)
{
    return ((pdm & 7u) << 1 | (uint32_t)lr) << (channel * 4u);
}

static inline int dmic_configure(const struct device *device,
                                 struct dmic_cfg *config)
{
    const struct pcm_stream_cfg *stream = config->streams;

    slab = stream->mem_slab;
    return strcmp(device->name, "dmic_dev") == 0 && stream->pcm_rate == 16000 &&
                   stream->pcm_width == 16 &&
                   stream->block_size == slab->size &&
                   config->channel.req_num_chan == 1 &&
                   config->channel.req_num_streams == 1
               ? 0
               : -22;
}

static inline int dmic_trigger(const struct device *device,
                               enum dmic_trigger cmd)
{
    (void)device;
    sound = fopen(getenv("SOUND"), "rb");
    return sound != NULL && cmd == DMIC_TRIGGER_START ? 0 : -5;
}

static inline int dmic_read(const struct device *device, uint8_t stream,
                            void **block, uint32_t *size, int32_t timeout)
{
    (void)device, (void)stream, (void)timeout;
    *block = malloc(slab->size);
    *size = (uint32_t)fread(*block, 1, slab->size, sound);
    slab->used++;
    if (*size != slab->size)
        free(*block);
    return *size == slab->size && slab->used == 1 ? 0 : -11;
}

#endif
