/* A thread names, places and asks about another one, and reads its clock, wherever that runs. */
#include "../harness.h"
#include <sched.h>
#include <time.h>

enum { THREADS = 4, WORK = 5000000 /* nanoseconds */ };

static pthread_t ids[THREADS];
static char found[THREADS][16];
static pthread_barrier_t barrier;

static void meet(void)
{
    pthread_barrier_wait(&barrier);
}

static void *work(void *argument)
{
    int self = (int)(intptr_t)argument;
    meet();
    meet();
    EXPECT(0, pthread_getname_np(pthread_self(), found[self], sizeof found[self]));
    struct timespec used;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < WORK);
    meet();
    meet();
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    cpu_set_t all;
    EXPECT(0, sched_getaffinity(0, sizeof all, &all));
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    EXPECT(0, pthread_barrier_init(&barrier, NULL, THREADS + 1));
    for (int i = 0; i < THREADS; i++)
        EXPECT(0, pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i));
    meet();
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "worker-%d", i);
        EXPECT(0, pthread_setname_np(ids[i], name));
        EXPECT(ERANGE, pthread_setname_np(ids[i], "a name that is too long"));
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        EXPECT(0, pthread_setaffinity_np(ids[i], sizeof one, &one));
        struct sched_param parameters = {.sched_priority = 0};
        EXPECT(0, pthread_setschedparam(ids[i], SCHED_BATCH, &parameters));
    }
    meet();
    meet();
    for (int i = 0; i < THREADS; i++) {
        char name[16], expected[16];
        snprintf(expected, sizeof expected, "worker-%d", i);
        EXPECT(0, pthread_getname_np(ids[i], name, sizeof name));
        EXPECT(0, strcmp(name, expected));
        EXPECT(0, strcmp(found[i], expected));
        cpu_set_t set;
        EXPECT(0, pthread_getaffinity_np(ids[i], sizeof set, &set));
        EXPECT(1, CPU_COUNT(&set));
        REQUIRE(CPU_ISSET(first, &set));
        int policy = -1;
        struct sched_param parameters;
        EXPECT(0, pthread_getschedparam(ids[i], &policy, &parameters));
        EXPECT(SCHED_BATCH, policy);
        clockid_t clock;
        struct timespec used = {0};
        EXPECT(0, pthread_getcpuclockid(ids[i], &clock));
        EXPECT(0, clock_gettime(clock, &used));
        REQUIRE(used.tv_sec > 0 || used.tv_nsec >= WORK);
    }
    meet();
    for (int i = 0; i < THREADS; i++)
        EXPECT(0, pthread_join(ids[i], NULL));
    return pass();
}
