/* Threads on all nodes that meet at barriers for ever. Says when all of them have started, and in which processes: those of the nodes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4 };
static pthread_barrier_t barrier;
static long rounds[THREADS], processes[THREADS];

static void *work(void *self)
{
    char name[32] = "";
    if (readlink("/proc/self", name, sizeof name - 1) > 0)
        processes[(long)self] = atol(name);
    for (;;) {
        rounds[(long)self]++;
        pthread_barrier_wait(&barrier);
        if (self == 0 && rounds[0] == 10) {
            for (int i = 0; i < THREADS; i++)
                printf("%ld ", processes[i]);
            puts("have started");
            fflush(stdout);
        }
    }
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    return pthread_join(threads[0], NULL);
}
