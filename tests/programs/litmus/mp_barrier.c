/* Message passing by a barrier: each thread in turn writes, all others read after the barrier. */
#include "../harness.h"

enum { WORDS = 600 }; /* a little over one page */
static long data[WORDS];
static pthread_barrier_t barrier;

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        if (round % threads == self)
            for (int i = 0; i < WORDS; i++)
                data[i] = round * WORDS + i;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < WORDS; i++)
            violations += data[i] != round * WORDS + i;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 200);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "old data after the barrier");
}
