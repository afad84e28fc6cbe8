/* What every measuring program shares: the clock, lines of results, and threads that meet.
 *
 * Plain C with pthreads. Results are lines "NAME NANOSECONDS" on standard output. Under `gondwana run -n 2` main is on
 * node 0 and the second thread on node 1; run by itself, a program measures the same natively.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE 4096

static inline int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void must(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: error %d\n", what, error);
        exit(1);
    }
}

/* Whole pages, not touched yet. */
static inline char *new_pages(size_t count)
{
    void *memory;
    must(posix_memalign(&memory, PAGE, count * PAGE), "posix_memalign");
    return memory;
}

/* Samples are kept by the thread that takes them and printed after the measurement. */
struct samples {
    const char *name;
    int64_t *values;
    long count;
};

static inline struct samples new_samples(const char *name, long room)
{
    struct samples s = {name, calloc((size_t)room, sizeof(int64_t)), 0};
    must(s.values == NULL, "calloc");
    for (long i = 0; i < room; i++)
        s.values[i] = -1; /* present before the first measurement */
    return s;
}

static inline void add_sample(struct samples *s, int64_t nanoseconds)
{
    s->values[s->count++] = nanoseconds;
}

static inline void print_samples(const struct samples *s)
{
    for (long i = 0; i < s->count; i++)
        printf("%s %ld\n", s->name, (long)s->values[i]);
    fflush(stdout);
}

static pthread_barrier_t everybody;

/* Waits for all other threads. */
static inline void meet(void)
{
    int error = pthread_barrier_wait(&everybody);
    must(error != PTHREAD_BARRIER_SERIAL_THREAD ? error : 0, "pthread_barrier_wait");
}

/* Runs `first` on main and `second` on a thread of its own, until both have ended. */
static inline void run_pair(void (*first)(void), void *(*second)(void *))
{
    pthread_t thread;
    must(pthread_barrier_init(&everybody, NULL, 2), "pthread_barrier_init");
    must(pthread_create(&thread, NULL, second, NULL), "pthread_create");
    first();
    must(pthread_join(thread, NULL), "pthread_join");
}

/* Runs `routine` on so many threads, each with its number, until all have ended; main is number 0. */
static inline void run_all(long count, void *(*routine)(void *number))
{
    pthread_t *others = malloc((size_t)count * sizeof(pthread_t));
    must(others == NULL, "malloc");
    must(pthread_barrier_init(&everybody, NULL, (unsigned)count), "pthread_barrier_init");
    for (long i = 1; i < count; i++)
        must(pthread_create(&others[i], NULL, routine, (void *)i), "pthread_create");
    routine(NULL);
    for (long i = 1; i < count; i++)
        must(pthread_join(others[i], NULL), "pthread_join");
    free(others);
}

/* A permutation of 0 ... count - 1, a power of 2, in which no distance comes up again and again: whoever tries to foresee
 * the next page is wrong. */
static inline long scattered(long index, long count)
{
    unsigned long mask = (unsigned long)count - 1, x = (unsigned long)index;
    for (int round = 0; round < 3; round++) {
        x = (x * 389 + 17) & mask;
        x ^= x >> 3;
        x = (x * 1021 + 5) & mask;
        x ^= x >> 5;
    }
    return (long)x;
}

#endif
