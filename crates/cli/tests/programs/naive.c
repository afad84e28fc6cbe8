/* Naive: main initialises everything; each thread works on a block of rows of its own, all read one table, and pairs of
   threads exchange work. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { THREADS = 4, PAGE = 4096, OWN = 32, TABLE = 600, ROUNDS = 40 };
char rows[THREADS * OWN * PAGE] __attribute__((aligned(PAGE)));
static char *table;
static struct { long value; char rest[PAGE - sizeof(long)]; } boxes[THREADS] __attribute__((aligned(PAGE)));
static pthread_barrier_t barrier;
static __attribute__((noinline)) char *make_table(void) {
    char *made = malloc(TABLE * PAGE);
    return made;
}
static void *work(void *argument) {
    long index = (long)argument, sum = 0;
    char *own = rows + index * OWN * PAGE;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OWN; i++) own[i * PAGE + round]++;
        boxes[index].value += round;
        pthread_barrier_wait(&barrier);
        /* The others of a pair: 0 and 2, 1 and 3. */
        boxes[(index + 2) % THREADS].value += index;
        pthread_barrier_wait(&barrier);
    }
    /* Pages of the table in no order. */
    for (unsigned i = 0; i < 2 * TABLE; i++) sum += table[(i * 2654435761u >> 9) % TABLE * PAGE + index];
    for (int i = 0; i < OWN * PAGE; i++) sum += own[i];
    return (void *)(sum + boxes[index].value);
}
int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    memset(rows, 1, sizeof rows);
    table = make_table();
    for (int i = 0; i < TABLE * PAGE; i++) table[i] = i % 11;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        printf("%ld\n", (long)sum);
    }
    return 0;
}
