/* 64 threads at once, several times over, with a mutex, a barrier and heap blocks. */
#include "../harness.h"

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long *part[MAX_THREADS];
static long total;

static long work(int self)
{
    part[self] = malloc(100 * sizeof(long));
    for (int i = 0; i < 100; i++)
        part[self][i] = self;
    pthread_barrier_wait(&barrier);
    long sum = 0;
    for (int i = 0; i < threads; i++)
        sum += part[i][self % 100];
    pthread_mutex_lock(&mutex);
    total += sum;
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    free(part[(self + 1) % threads]);
    return 0;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 64, 3);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (long i = 0; i < iterations; i++)
        run_threads(threads, work);
    EXPECT(iterations * threads * (threads * (threads - 1) / 2), total);
    return pass();
}
