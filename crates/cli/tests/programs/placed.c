/* Threads add up a block, a variable and many small blocks; then each writes the part of another. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { PAGES = 400, THREADS = 4, SMALL = 2000 };
char table[64 * 4096] __attribute__((aligned(4096))) = {1};
static char *block;
static char *small[SMALL];
static pthread_barrier_t barrier;
static __attribute__((noinline)) char *make_block(void) {
    char *made = malloc(PAGES * 4096);
    return made;
}
static void *work(void *argument) {
    long index = (long)argument, sum = 0;
    for (int round = 0; round < 3; round++) {
        sum = 0;
        for (int i = 0; i < PAGES * 4096; i += 64) sum += block[i];
        for (int i = 0; i < 64 * 4096; i += 64) sum += table[i];
        for (int i = 0; i < SMALL; i++) sum += small[i][0];
        pthread_barrier_wait(&barrier);
        int length = PAGES * 4096 / THREADS, part = (index + round) % THREADS;
        for (int i = 0; i < length; i++) block[part * length + i]++;
        table[index * 4096 + round]++;
        pthread_barrier_wait(&barrier);
    }
    return (void *)sum;
}
int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    block = make_block();
    memset(block, 1, PAGES * 4096);
    for (int i = 0; i < SMALL; i++) memset(small[i] = malloc(200), i % 7, 200);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        printf("%ld\n", (long)sum);
    }
    return 0;
}
