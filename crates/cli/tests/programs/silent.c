/* Threads on all nodes that have nothing more to say to each other. Says when all of them have started. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4 };
static pthread_barrier_t barrier;

static void *work(void *self)
{
    pthread_barrier_wait(&barrier);
    if (self == 0) {
        puts("all have started");
        fflush(stdout);
    }
    for (;;)
        pause();
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    return pthread_join(threads[0], NULL);
}
