/* Threads that may run on some processors only, and threads that are joined after others have started in their place. For a machine
 * of two nodes with two processors or more each. At the end, blocks with alignments are given back. Prints "ok". */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int processors, half;

static void fail(const char *what)
{
    printf("wrong: %s\n", what);
    exit(1);
}

static cpu_set_t node_set(int node)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int at = node * half; at < (node + 1) * half; at++)
        CPU_SET(at, &set);
    return set;
}

static unsigned node_here(void)
{
    unsigned processor, node;
    if (getcpu(&processor, &node) != 0 || (int)processor != sched_getcpu() || node != processor / (unsigned)half)
        fail("getcpu");
    return node;
}

static void nap(void)
{
    struct timespec time = {0, 100000};
    nanosleep(&time, NULL);
}

/* Works and naps on its node; its own threads stay there, too. */
static void *stays(void *depth)
{
    unsigned node = node_here();
    for (volatile int round = 0; round < 20000; round++)
        if (round % 5000 == 0) {
            nap();
            if (node_here() != node)
                fail("a thread left its node");
        }
    if (depth != NULL) {
        pthread_t own;
        void *result;
        pthread_create(&own, NULL, stays, NULL);
        pthread_join(own, &result);
        if (result != (void *)(size_t)(node + 1))
            fail("a thread's thread ran elsewhere");
    }
    return (void *)(size_t)(node + 1);
}

/* The processor after a nap. */
static void *where(void *none)
{
    (void)none;
    nap();
    return (void *)(size_t)sched_getcpu();
}

static void *number(void *value)
{
    return value;
}

int main(void)
{
    processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    half = processors / 2;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != processors)
        fail("main may run on all");
    pthread_t threads[64];
    pthread_attr_t attributes;
    for (int at = 0; at < 64; at++) {
        pthread_attr_init(&attributes);
        set = node_set(at % 2);
        pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
        pthread_create(&threads[at], &attributes, stays, &set);
    }
    for (int at = 0; at < 64; at++) {
        void *node;
        pthread_join(threads[at], &node);
        if (node != (void *)(size_t)(at % 2 + 1))
            fail("a thread ran where its attributes do not say");
    }
    for (int at = 0; at < 6; at++) {
        set = node_set(at % 2);
        if (sched_setaffinity(0, sizeof set, &set) != 0 || node_here() != (unsigned)at % 2)
            fail("main did not move");
    }
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    pthread_create(&threads[0], NULL, where, NULL);
    if (pthread_setaffinity_np(threads[0], sizeof set, &set) != 0)
        fail("another thread");
    pthread_getaffinity_np(threads[0], sizeof set, &set);
    if (CPU_COUNT(&set) != 1 || !CPU_ISSET(0, &set))
        fail("what another thread may use");
    CPU_ZERO(&set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0)
        fail("no processor at all");
    void *first, *second;
    pthread_join(threads[0], &first);
    if (first != (void *)0)
        fail("another thread did not move");

    pthread_create(&threads[0], NULL, number, (void *)1);
    nap();
    pthread_create(&threads[1], NULL, number, (void *)2);
    if (pthread_join(threads[0], &first) != 0 || pthread_join(threads[1], &second) != 0)
        fail("a thread that had ended could not be joined");
    if (first != (void *)1 || second != (void *)2)
        fail("the result of another thread");

    for (int at = 4; at < 16; at++) {
        void *blocks[2] = {aligned_alloc(1 << at, 1 << at), malloc(100)};
        if ((size_t)blocks[0] % (1 << at) != 0)
            fail("an alignment");
        free(blocks[0]);
        free(blocks[1]);
    }
    puts("ok");
    return 0;
}
