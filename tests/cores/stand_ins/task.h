/* task.h: see FreeRTOS.h beside it. */
#ifndef TASK_H
#define TASK_H

#include "FreeRTOS.h"

#ifdef NO_SECOND
#define HURRY 20 /* time goes faster, so that a test waits less */
#else
#define HURRY 1
#endif

static struct task tasks_[configNUMBER_OF_CORES];
static __thread struct task *me_;

#define taskYIELD() ((void)sched_yield())

static void *task_(void *task)
{
    me_ = task;
    me_->function(me_->argument);
    return NULL;
}

/* One task for each core. */
static inline BaseType_t
xTaskCreateAffinitySet(TaskFunction_t function, const char *name,
                       uint32_t stack_words, void *argument,
                       UBaseType_t priority, UBaseType_t cores,
                       TaskHandle_t *handle)
{
    struct task *task = &tasks_[cores >> 1];

    (void)name;
    (void)stack_words;
    (void)priority;
    task->function = function;
    task->argument = argument;
    (void)sem_init(&task->notified, 0, 0);
    if (handle != NULL)
        *handle = task;
#ifdef NO_SECOND
    if (cores == 2u)
        return pdPASS;
#endif
    return pthread_create(&task->thread, NULL, task_, task) == 0;
}

static inline void vTaskStartScheduler(void)
{
    (void)pthread_join(tasks_[0].thread, NULL);
}

static inline void vTaskDelete(TaskHandle_t task)
{
    if (task == NULL)
        pthread_exit(NULL);
}

static inline TickType_t xTaskGetTickCount(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (TickType_t)(HURRY * (now.tv_sec * 1000 + now.tv_nsec / 1000000));
}

static inline BaseType_t xTaskNotifyGive(TaskHandle_t task)
{
    return sem_post(&task->notified) == 0;
}

static inline uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t ticks)
{
    (void)clear;
    (void)ticks;
    return sem_wait(&me_->notified) == 0;
}

#endif
