/* Threads on all nodes read a table that main has filled, more than their second caches have, and write some of it; each
 * also works on a part of its own that main has filled, too. Prints sums that do not depend on the machine. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 16, WORDS = 1 << 17, OWN = 1 << 13, READS = 60000, ROUNDS = 3, WRITES = 64 };

static long *table, *own;
static long sums[THREADS][16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument)
{
    long number = (long)argument, sum = 0;
    unsigned random = (unsigned)number + 1;
    long *mine = own + number * OWN;
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 0; at < READS; at++) {
            random = random * 1664525 + 1013904223;
            /* The first words are written below. */
            sum += table[WRITES + (random >> 8) % (WORDS - WRITES)];
        }
        for (int at = 0; at < OWN; at++)
            mine[at] += round;
        pthread_mutex_lock(&lock);
        for (int at = 0; at < WRITES; at += 8)
            table[at] += number;
        pthread_mutex_unlock(&lock);
    }
    sums[number][0] = sum;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    table = aligned_alloc(8192, WORDS * sizeof *table);
    own = aligned_alloc(8192, THREADS * OWN * sizeof *own);
    for (int at = 0; at < WORDS; at++)
        table[at] = at % 101;
    for (int at = 0; at < THREADS * OWN; at++)
        own[at] = at % 7;
    for (long number = 0; number < THREADS; number++)
        if (pthread_create(&threads[number], NULL, work, (void *)number))
            return 1;
    for (int number = 0; number < THREADS; number++)
        pthread_join(threads[number], NULL);
    for (int number = 0; number < THREADS; number++)
        sum += sums[number][0];
    for (int at = 0; at < THREADS * OWN; at++)
        sum += own[at];
    printf("%ld %ld\n", sum, table[8]);
    return 0;
}
