/* Of Zephyr what the program calls. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <stdio.h>

#define printk printf

#endif
