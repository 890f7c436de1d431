/* kernel.h: of Zephyr what docs/two-cores.md uses, with POSIX threads as
 * threads. NO_SECOND: threads that are created never begin. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

typedef void (*k_thread_entry_t)(void *a, void *b, void *c);
struct k_thread {
    pthread_t thread;
    k_thread_entry_t entry;
    int cpu;
};
typedef struct k_thread *k_tid_t;
typedef int k_timeout_t;
struct k_sem {
    sem_t sem;
};

#ifdef NO_SECOND
#define HURRY 20 /* time goes faster, so that a test waits less */
#else
#define HURRY 1
#endif
#define K_FOREVER                          (-1)
#define K_PRIO_PREEMPT(n)                  (n)
#define K_THREAD_STACK_DEFINE(name, bytes) static char name[bytes]
#define K_THREAD_STACK_SIZEOF(name)        sizeof(name)
#define K_SEM_DEFINE(name, first, most)    static struct k_sem name
#define printk                             printf

static inline void *thread_(void *thread)
{
    ((struct k_thread *)thread)->entry(NULL, NULL, NULL);
    return NULL;
}

static inline k_tid_t k_thread_create(struct k_thread *thread, char *stack,
                                      size_t bytes, k_thread_entry_t entry,
                                      void *a, void *b, void *c, int priority,
                                      uint32_t options, k_timeout_t delay)
{
    (void)stack;
    (void)bytes;
    (void)a;
    (void)b;
    (void)c;
    (void)priority;
    (void)options;
    (void)delay;
    thread->entry = entry;
    return thread;
}

static inline int k_thread_cpu_pin(k_tid_t thread, int cpu)
{
    thread->cpu = cpu;
    return 0;
}

static inline void k_thread_start(k_tid_t thread)
{
#ifdef NO_SECOND
    (void)thread_;
    (void)thread;
#else
    (void)pthread_create(&thread->thread, NULL, thread_, thread);
#endif
}

static inline void k_yield(void)
{
    (void)sched_yield();
}

static inline int64_t k_uptime_get(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return HURRY * (now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static inline void k_sem_give(struct k_sem *sem)
{
    (void)sem_post(&sem->sem);
}

static inline int k_sem_take(struct k_sem *sem, k_timeout_t timeout)
{
    (void)timeout;
    return sem_wait(&sem->sem);
}

#endif
