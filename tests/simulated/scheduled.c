/* Twice as many threads as the machine has processors, three times as much work for a fourth of them, and a lock. Each counts
 * how often it finds itself on another processor, and on another node, than before; a node has 8 processors. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 32, WORDS = 1 << 11, ROUNDS = 80 };

static long sums[THREADS][16];
static long moves[THREADS][16], leaves[THREADS][16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;

static void *work(void *argument)
{
    long number = (long)argument, sum = 0;
    long *mine = aligned_alloc(8192, WORDS * sizeof *mine);
    int last = sched_getcpu();
    int rounds = number % 4 == 0 ? ROUNDS * 3 : ROUNDS;
    for (int at = 0; at < WORDS; at++)
        mine[at] = at + number;
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < WORDS; at++)
            sum += mine[at] ^ round;
        pthread_mutex_lock(&lock);
        shared += sum & 0xff;
        pthread_mutex_unlock(&lock);
        int now = sched_getcpu();
        moves[number][0] += now != last;
        leaves[number][0] += now / 8 != last / 8;
        last = now;
    }
    sums[number][0] = sum;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0, moved = 0, left = 0;
    for (long number = 0; number < THREADS; number++)
        if (pthread_create(&threads[number], NULL, work, (void *)number))
            return 1;
    for (int number = 0; number < THREADS; number++) {
        pthread_join(threads[number], NULL);
        sum += sums[number][0];
        moved += moves[number][0];
        left += leaves[number][0];
    }
    printf("%ld %ld\n", sum, shared);
    fprintf(stderr, "moves %ld %ld\n", moved, left);
    return 0;
}
