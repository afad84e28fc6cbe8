/* The memory programs of the Olifant paper (section 6): each thread copies, sums or fills memory of its own.
 *
 * usage: bandwidth THREADS KIB: so many threads, the first one on the processor of main, with KIB of memory each.
 *
 * Prints one line for each program: its name and the megabytes that a thread processes in a second, in all; a copy counts once.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long threads;
static size_t bytes;
static pthread_barrier_t barrier;

static void copy(long *to, const long *from)
{
    memcpy(to, from, bytes);
}

static void sum(long *to, const long *from)
{
    long total = 0;
    for (size_t i = 0; i < bytes / sizeof *from; i++)
        total += ((const volatile long *)from)[i];
    *to = total;
}

static void fill(long *to, const long *from)
{
    (void)from;
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        ((volatile long *)to)[i] = (long)i;
}

static const struct test {
    const char *name;
    void (*run)(long *to, const long *from);
} tests[] = {{"copy", copy}, {"read", sum}, {"write", fill}};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *work(void *argument)
{
    long *to = aligned_alloc(1 << 16, bytes), *from = aligned_alloc(1 << 16, bytes);
    if (!to || !from)
        exit(1);
    memset(to, 0, bytes);
    memset(from, 0, bytes);
    for (size_t test = 0; test < sizeof tests / sizeof *tests; test++) {
        pthread_barrier_wait(&barrier);
        double start = now();
        tests[test].run(to, from);
        pthread_barrier_wait(&barrier);
        if (!argument)
            printf("%s: %.1f\n", tests[test].name, (double)bytes * (double)threads / 1e6 / (now() - start));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: bandwidth THREADS KIB\n");
        return 2;
    }
    threads = atol(argv[1]);
    bytes = (size_t)atol(argv[2]) * 1024;
    pthread_t *others = malloc(sizeof *others * (size_t)threads);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (long i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, work, others))
            return 1;
    work(NULL);
    for (long i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    return 0;
}
