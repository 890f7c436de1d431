/* mps2_start.c: start-up of the test programs on QEMU's Cortex-M4: memory, FPU,
 * semihosting, main. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t start_data, end_data, load_data, start_bss, end_bss, __stack;
extern void initialise_monitor_handles(void);
extern int main(void);
void Reset_Handler(void);

static void fault(void)
{
    exit(99);
}

void Reset_Handler(void)
{
    uint32_t *to;
    const uint32_t *from = &load_data;

    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* CPACR: FPU on */
    for (to = &start_data; to < &end_data; to++)
        *to = *from++;
    for (to = &start_bss; to < &end_bss; to++)
        *to = 0;
    initialise_monitor_handles();
    exit(main());
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    &__stack,
    (void *)(uintptr_t)Reset_Handler,
    (void *)(uintptr_t)fault,
    (void *)(uintptr_t)fault,
    (void *)(uintptr_t)fault,
    (void *)(uintptr_t)fault,
    (void *)(uintptr_t)fault,
};
