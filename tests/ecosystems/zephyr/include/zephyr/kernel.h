/* kernel.h: what the sample of wake words takes of Zephyr's, over malloc. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stdint.h>
#include <stdlib.h>

struct k_mem_slab {
    uint32_t size;
    int used;
};

#define K_MEM_SLAB_DEFINE_STATIC(name, bytes, count, align)                    \
    static struct k_mem_slab name = {bytes, 0}

static inline void k_mem_slab_free(struct k_mem_slab *slab, void *block)
{
    slab->used--;
    free(block);
}

struct device {
    const char *name;
};

#define DT_NODELABEL(label) #label
#define DEVICE_DT_GET(node) (&(const struct device){node})

#endif
