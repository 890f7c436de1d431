/* FreeRTOS.h: of FreeRTOS what docs/two-cores.md uses, with POSIX threads as
 * tasks. NO_SECOND: tasks of the second core never begin. */
#ifndef FREERTOS_H
#define FREERTOS_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>

typedef uint32_t TickType_t;
typedef unsigned long UBaseType_t;
typedef long BaseType_t;
typedef void (*TaskFunction_t)(void *argument);

struct task {
    pthread_t thread;
    sem_t notified;
    TaskFunction_t function;
    void *argument;
};
typedef struct task *TaskHandle_t;

#define configNUMBER_OF_CORES   2
#define configUSE_CORE_AFFINITY 1
#define configTICK_RATE_HZ      1000
#define pdPASS                  1
#define pdTRUE                  1
#define portMAX_DELAY           UINT32_MAX
#define pdMS_TO_TICKS(ms)       ((TickType_t)(ms))

#endif
