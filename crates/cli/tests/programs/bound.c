/* Where main and four threads, one after the other, may run: a line for each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static void say(const char *who)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    printf("%s", who);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            printf(" %d", cpu);
    printf("\n");
}

static void *run(void *argument)
{
    say("thread");
    /* One half of the threads ends by unwinding. */
    if (argument)
        pthread_exit(argument);
    return NULL;
}

int main(void)
{
    say("main");
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, run, i % 2 ? &thread : NULL) || pthread_join(thread, &result))
            return 1;
        if (result != (i % 2 ? &thread : NULL))
            return 2;
    }
    return 0;
}
