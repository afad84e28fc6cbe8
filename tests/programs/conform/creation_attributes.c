/* Threads begin with what the attributes say with which they are created: processors, policy, blocked signals, a stack of the program's. One that is cancelled before it has
 * begun ends all the same. */
#include "../harness.h"
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20 };

static int first;

static void *look(void *expected)
{
    cpu_set_t set;
    EXPECT(0, pthread_getaffinity_np(pthread_self(), sizeof set, &set));
    sigset_t blocked;
    EXPECT(0, pthread_sigmask(SIG_BLOCK, NULL, &blocked));
    bool ours = expected != NULL;
    if (ours) {
        EXPECT(1, CPU_COUNT(&set));
        REQUIRE(CPU_ISSET(first, &set));
    }
    EXPECT(ours ? SCHED_OTHER : SCHED_BATCH, sched_getscheduler(0));
    EXPECT(ours, sigismember(&blocked, SIGUSR2));
    return NULL;
}

enum { STACK = 64 * PAGE };

static char stacks[THREADS][STACK] __attribute__((aligned(PAGE)));

static void *run_on(void *stack)
{
    char here[3 * PAGE];
    memset(here, 1, sizeof here);
    REQUIRE(here >= (char *)stack && here < (char *)stack + STACK);
    pthread_attr_t attributes;
    void *start;
    size_t length;
    EXPECT(0, pthread_getattr_np(pthread_self(), &attributes));
    EXPECT(0, pthread_attr_getstack(&attributes, &start, &length));
    EXPECT(0, pthread_attr_destroy(&attributes));
    REQUIRE(start == stack);
    EXPECT(STACK, length);
    return stack;
}

static void *wait_for_ever(void *unused)
{
    (void)unused;
    while (true)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    parse(argc, argv, THREADS, 1);
    cpu_set_t all, one;
    EXPECT(0, sched_getaffinity(0, sizeof all, &all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    struct sched_param parameters = {.sched_priority = 0};
    EXPECT(0, sched_setscheduler(0, SCHED_BATCH, &parameters)); /* which other threads inherit */
    pthread_attr_t attributes;
    EXPECT(0, pthread_attr_init(&attributes));
    EXPECT(0, pthread_attr_setaffinity_np(&attributes, sizeof one, &one));
    EXPECT(0, pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED));
    EXPECT(0, pthread_attr_setschedpolicy(&attributes, SCHED_OTHER));
    EXPECT(0, pthread_attr_setschedparam(&attributes, &parameters));
    EXPECT(0, pthread_attr_setsigmask_np(&attributes, &blocked));
    for (int i = 0; i < THREADS; i++) {
        pthread_t with, without;
        EXPECT(0, pthread_create(&with, &attributes, look, &one));
        EXPECT(0, pthread_create(&without, NULL, look, NULL));
        EXPECT(0, pthread_join(with, NULL));
        EXPECT(0, pthread_join(without, NULL));
    }
    EXPECT(0, pthread_attr_destroy(&attributes));
    for (int i = 0; i < ROUNDS; i++) {
        char *stack = i % 2 ? stacks[i % THREADS] : malloc(STACK);
        pthread_t thread;
        EXPECT(0, pthread_attr_init(&attributes));
        EXPECT(0, pthread_attr_setstack(&attributes, stack, STACK));
        EXPECT(0, pthread_create(&thread, &attributes, run_on, stack));
        void *result = NULL;
        EXPECT(0, pthread_join(thread, &result));
        REQUIRE(result == stack);
        EXPECT(0, pthread_attr_destroy(&attributes));
        memset(stack, 0, STACK); /* nobody uses it any more */
        if (i % 2 == 0)
            free(stack);
    }
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t waiting;
        void *result = NULL;
        EXPECT(0, pthread_create(&waiting, NULL, wait_for_ever, NULL));
        EXPECT(0, pthread_cancel(waiting));
        EXPECT(0, pthread_join(waiting, &result));
        REQUIRE(result == PTHREAD_CANCELED);
    }
    return pass();
}
