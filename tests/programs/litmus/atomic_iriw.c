/* Independent reads of independent writes with atomics: two readers cannot see opposite orders. */
#include "../harness.h"
#include <stdatomic.h>

static struct {
    atomic_long value;
    char pad[PAGE - sizeof(long)];
} x, y;
static struct {
    long first, second;
} seen[MAX_THREADS];
static pthread_barrier_t barrier;

static void step(int self, long round)
{
    if (self == 0)
        atomic_store(&x.value, round);
    else if (self == 1)
        atomic_store(&y.value, round);
    else {
        seen[self].first = atomic_load(self % 2 ? &y.value : &x.value);
        seen[self].second = atomic_load(self % 2 ? &x.value : &y.value);
    }
}

static long work(int self)
{
    long violations = 0;
    for (long round = 1; round <= iterations; round++) {
        step(self, round);
        pthread_barrier_wait(&barrier);
        if (self >= 2 && self % 2 == 0)
            for (int other = 3; other < threads; other += 2)
                violations += seen[self].first == round && seen[self].second < round &&
                              seen[other].first == round && seen[other].second < round;
        pthread_barrier_wait(&barrier);
    }
    return violations;
}

int main(int argc, char **argv)
{
    parse(argc, argv, 4, 300);
    EXPECT(0, pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    return verdict(run_threads(threads, work), "two readers saw the writes in opposite orders");
}
