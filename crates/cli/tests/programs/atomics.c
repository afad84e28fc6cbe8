/* Two threads work by turns on what they change by atomic instructions and on what they do not, all in blocks and pages of its own but the
   last variable, which is beside an atomic one. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2, ROUNDS = 40, PAGE = 4096 };
#define ALONE __attribute__((aligned(4096)))

static ALONE atomic_long counter;
static ALONE volatile long plain;
struct queue {
    long made;
    atomic_int tail;
    volatile long beside;
};
static ALONE struct queue *queue;
static ALONE pthread_barrier_t barrier;

static void *work(void *self)
{
    for (int round = 0; round < ROUNDS; round++) {
        atomic_fetch_add(&counter, 1);
        pthread_barrier_wait(&barrier);
        int tail = atomic_load(&queue->tail);
        while (!atomic_compare_exchange_weak(&queue->tail, &tail, tail + 2)) {
        }
        pthread_barrier_wait(&barrier);
        if (round % THREADS == (int)(long)self) {
            plain++;
            queue->beside++;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    queue = aligned_alloc(PAGE, PAGE);
    *queue = (struct queue){.made = 1};
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %d %ld %ld\n", counter, queue->tail, plain, queue->beside);
}
