/* Two threads add to a variable and a block of memory in turns until standard input ends. Then both have the same sum. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 2048 };
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int over, last;
long exchanged[WORDS];
static long *block;

static void *work(void *argument)
{
    long self = (long)argument;
    for (long round = 0; !last; round++) {
        if (round % 2 == self)
            for (int i = 0; i < WORDS; i += 64) {
                exchanged[i]++;
                block[i]++;
            }
        pthread_barrier_wait(&barrier);
        if (self == 0) {
            pthread_mutex_lock(&mutex);
            last = over;
            pthread_mutex_unlock(&mutex);
        }
        pthread_barrier_wait(&barrier);
        if (round == 10 && self == 0) {
            puts("ready");
            fflush(stdout);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    char byte;
    /* Large enough to be among large blocks. */
    block = calloc(16 * WORDS, sizeof *block);
    pthread_barrier_init(&barrier, NULL, 2);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    while (read(0, &byte, 1) > 0)
        ;
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORDS; i++)
        if (exchanged[i] != block[i] || (i % 64 != 0 && block[i] != 0))
            return 1;
    puts("the same");
    return 3;
}
