/* The latencies of a simulated machine, as a pointer chase in a program sees them: each load needs the last one's result.
 *
 * usage: latency LINES STRIDE CACHE: so many lines, STRIDE bytes apart; CACHE bytes are in the second cache.
 *
 * Threads are placed by their numbers: 0 measures, 1 is on another processor of the same node, 2, 3 and 4 are on other nodes,
 * of which 2 is the nearest and 4 the one to which messages pass one more link. Each case has memory of its own, which a thread
 * touches first, so that it is on that thread's node. Prints one line for each: its name and nanoseconds for a load.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 5 };

static long lines, stride, cache;
static pthread_barrier_t barrier;

struct test {
    const char *name;
    int home;  /* the thread whose node has the memory */
    int owner; /* the thread in whose cache the lines are modified; -1 for none */
    char *memory;
};

static struct test tests[] = {
    {"local memory", 0, -1, NULL},
    {"local cache", 0, 1, NULL},
    {"remote memory", 2, -1, NULL},
    {"three hops", 2, 3, NULL},
    {"remote memory, one more link", 4, -1, NULL},
};
enum { TESTS = sizeof tests / sizeof *tests };

static char *line(struct test *test, long number)
{
    return test->memory + number * stride;
}

/* Each line has the address of the next one. */
static void link_lines(struct test *test)
{
    for (long i = 0; i < lines; i++)
        *(char **)line(test, i) = i + 1 < lines ? line(test, i + 1) : NULL;
}

/* Has the cache of this thread's processor write all its lines back. */
static void flush(void)
{
    static __thread char *other;
    static __thread long sum;
    if (!other)
        other = malloc((size_t)cache * 2);
    for (long i = 0; i < cache * 2; i += 8)
        sum += other[i];
}

static void *work(void *argument)
{
    int self = (int)(long)argument;
    for (int number = 0; number < TESTS; number++) {
        struct test *test = &tests[number];
        if (self == test->home) {
            test->memory = aligned_alloc(1 << 16, (size_t)(lines * stride + (1 << 16)) >> 16 << 16);
            link_lines(test);
            flush();
        }
        pthread_barrier_wait(&barrier);
        if (self == test->owner)
            link_lines(test);
        pthread_barrier_wait(&barrier);
        if (self == 0) {
            struct timespec start, end;
            clock_gettime(CLOCK_MONOTONIC, &start);
            for (char *at = test->memory; at; at = *(char **)at)
                ;
            clock_gettime(CLOCK_MONOTONIC, &end);
            double nanoseconds = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
            printf("%s: %.0f\n", test->name, nanoseconds / (double)lines);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: latency LINES STRIDE CACHE\n");
        return 2;
    }
    lines = atol(argv[1]);
    stride = atol(argv[2]);
    cache = atol(argv[3]);
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 1; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    work(NULL);
    for (int i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
