/* Threads on all nodes that meet at barriers for ever. Says when all of them have started. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };
static pthread_barrier_t barrier;
static long rounds[THREADS];

static void *work(void *self)
{
    for (;;) {
        rounds[(long)self]++;
        pthread_barrier_wait(&barrier);
        if (self == 0 && rounds[0] == 10) {
            puts("all have started");
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
