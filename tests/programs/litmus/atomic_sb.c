/* Store buffering with sequentially consistent atomics: the two threads of a pair cannot both read 0. */
#include "../harness.h"
#include <stdatomic.h>

static struct {
    atomic_long value;
    char pad[PAGE - sizeof(long)];
} variable[MAX_THREADS];
static long seen[MAX_THREADS];
static pthread_barrier_t barrier;

static long work(int self)
{
    long violations = 0;
    int other = self ^ 1;
    bool paired = other < threads;
    for (long round = 1; round <= iterations; round++) {
        if (paired) {
            atomic_store(&variable[self].value, round);
            seen[self] = atomic_load(&variable[other].value);
        }
        pthread_barrier_wait(&barrier);
        if (paired)
            violations += seen[self] < round && seen[other] < round;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 2, 300);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "both threads of a pair read the old value");
}
