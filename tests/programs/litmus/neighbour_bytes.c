/* Neighbouring bytes: threads write interleaved bytes of the same words, all are kept. */
#include "../harness.h"

enum { BYTES = 2 * PAGE + 100 };
static unsigned char bytes[BYTES];
static pthread_barrier_t barrier;

static unsigned char value(int index, long round)
{
    return (unsigned char)((unsigned)index * 31u + (unsigned)round * 17u);
}

static long work(int self)
{
    long violations = 0;
    for (long round = 0; round < iterations; round++) {
        /* The threads change places in each round, so that every byte gets a new writer. */
        for (int i = 0; i < BYTES; i++)
            if ((i + round) % threads == self)
                bytes[i] = value(i, round);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < BYTES; i++)
            violations += bytes[i] != value(i, round);
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 100);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "a byte was lost");
}
